"""Ranks of MPICH on the wire: its connections do not name them, so they are those of hosts with one rank each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.files import read_analysis
from experiments.models import State, Trial
from tests.workers.clusters.mpi_programs import exchange_over_mpich
from workers.trial.rank_usage import RankUsage, ranks_by_address


def usages(*hosts: str) -> list[RankUsage]:
    return [
        RankUsage(rank, host, 1.0, 0.0, 1000, 10, 1, 0, None, 0, 1, 0.0)
        for rank, host in reversed(list(enumerate(hosts)))
    ]


def test_ranks_stand_at_every_address_that_is_their_hosts_alone() -> None:
    addresses = {
        "a": frozenset({"127.0.0.1", "10.0.0.1", "fd00::1"}),
        "b": frozenset({"127.0.0.1", "10.0.0.2"}),
        "c": frozenset({"10.0.0.3"}),
    }
    told = ranks_by_address(usages("a", "b", "b"), addresses, 3)
    assert told == {"10.0.0.1": [0], "fd00::1": [0], "10.0.0.2": [1, 2]}


def test_with_a_report_missing_no_rank_is_placed() -> None:
    assert ranks_by_address(usages("a", "b"), {"a": frozenset({"10.0.0.1"})}, 3) == {}


@pytest.mark.timeout(120)
def test_mpich_with_a_rank_on_each_host_has_ranks_on_the_wire(
    run_all: Callable[..., list[Trial]], open_path: Path
) -> None:
    (trial,) = run_all(
        workload="command",
        parameters={"program": [str(exchange_over_mpich(open_path))]},
        sweep={"hosts": [2]},
        certificate="skip",
        retries=0,
    )
    assert trial.state == State.FINISHED, trial.message
    assert trial.conditions["world"].startswith("2 ranks in one world, as asked (libmpich")
    ranks = read_analysis(trial)["matrices"]["ranks"]
    assert (ranks["labels"], ranks["source"], ranks["by_host_alone"]) == ([0, 1], "one_rank_per_host", None)
    there, back = ranks["payload_bytes"][0][1], ranks["payload_bytes"][1][0]
    assert 3_000_000 < there < 3_300_000  # three messages of a megabyte each way, and what the library says beside them
    assert 3_000_000 < back < 3_300_000
