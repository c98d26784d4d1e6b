"""Ranks of MPICH on the wire, by hosts with one rank each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.files import read_analysis
from experiments.models import Cluster, State, Trial
from tests.workers.clusters.mpi_programs import exchange_over_mpich, hidden_in_script
from tests.workers.clusters.real_hosts import SshHosts
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
    answer = ranks_by_address(usages("a", "b", "b"), addresses, 3)
    assert answer == {"10.0.0.1": [0], "fd00::1": [0], "10.0.0.2": [1, 2]}


def test_with_a_report_missing_no_rank_is_placed() -> None:
    assert ranks_by_address(usages("a", "b"), {"a": frozenset({"10.0.0.1"})}, 3) == {}


def require_ranks_of_the_exchange(trial: Trial) -> None:
    """Require three messages of a megabyte each way, besides the library's own."""
    assert trial.state == State.FINISHED, trial.message + trial.traceback
    assert trial.conditions["world"].startswith("2 ranks in one world, as requested (libmpich")
    ranks = read_analysis(trial)["matrices"]["ranks"]
    assert (ranks["labels"], ranks["source"], ranks["by_host_alone"]) == ([0, 1], "one_rank_per_host", None)
    there, back = ranks["payload_bytes"][0][1], ranks["payload_bytes"][1][0]
    assert 3_000_000 < there < 3_300_000
    assert 3_000_000 < back < 3_300_000


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
    require_ranks_of_the_exchange(trial)


@pytest.mark.timeout(120)
def test_mpich_on_hosts_over_ssh_has_them_too(
    run_all: Callable[..., list[Trial]], open_path: Path, ssh_hosts: SshHosts
) -> None:
    """Hydra launches, every host records, joined, and no rank is lost.

    These hosts share a machine, and with it memory that those of a cluster would not.
    """
    apart = ("export UCX_TLS=tcp,self UCX_NET_DEVICES=eth0", "export FI_PROVIDER=tcp MPIR_CVAR_NOLOCAL=1")
    program = hidden_in_script(open_path, *apart, f"exec {exchange_over_mpich(open_path)}")
    Cluster.objects.create(slug="real-ssh", name="Real hosts", kind="ssh", settings=ssh_hosts.settings())
    (trial,) = run_all(
        workload="command",
        parameters={"program": [str(program)]},
        sweep={"hosts": [2]},
        cluster="real-ssh",
        retries=0,
    )
    require_ranks_of_the_exchange(trial)
    assert trial.command[0] == "mpiexec.hydra"
    assert (trial.conditions["hosts"], trial.conditions["joined"]["hosts"]) == (["n1", "n2"], ["n1", "n2"])
    assert trial.conditions["ranks_on"] == {"n1": "0", "n2": "1"}
    assert trial.trust == "good", trial.trust_reasons
    values = dict(trial.measurements.filter(scope="mpi").values_list("metric", "value"))
    assert values["payload_bytes"] > 6_000_000
