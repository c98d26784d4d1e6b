"""Workloads of studies with hosts of their own, run on the test-bed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from experiments.files import read_analysis
from experiments.models import State, Trial
from tests.workers.trial.mpi.trees import tree_of


def figures(trial: Trial) -> dict[str, float]:
    assert trial.state == State.FINISHED, trial.message + trial.traceback
    return dict(trial.measurements.filter(scope="all").values_list("metric", "value"))


def test_readers_on_other_hosts_share_the_servers_link(run_all: Callable[..., list[Trial]]) -> None:
    (trial,) = run_all(
        workload="concurrent-readers",
        parameters={"hosts": 3, "jobs": 4, "events": 10, "events_per_job": 6},
        link={"bandwidth": "20 Mbit/s"},
    )
    values = tree_of(trial)
    assert values["concurrent-readers.read_bytes"] == 4 * 6 * 5 * 8192
    assert values["concurrent-readers.server_throughput_bps"] < 20e6
    assert values["wire_bytes"] > values["concurrent-readers.read_bytes"]
    assert {"Phases", "Jobs", "Jobs on n2, CPU", "Jobs on n3, CPU"} <= trial.tables.keys()


@pytest.mark.parametrize("method", ["pull", "multicast", "tree"])
def test_a_data_set_reaches_every_node_by_each_method(run_all: Callable[..., list[Trial]], method: str) -> None:
    parameters: dict[str, Any] = {"hosts": 4, "dataset_bytes": "500 kB", "searches": 2, "staging": method}
    (trial,) = run_all(workload="data-staging", parameters=parameters, link={"bandwidth": "50 Mbit/s"})
    values = figures(trial)
    assert values["data-staging.nodes"] == 3
    # The server's own link carries a multicast once, and three times what three nodes pull.
    sent_once = values["data-staging.staged_bytes"]
    copies = values["wire_bytes"] / sent_once
    assert (1 < copies < 2.5) if method == "multicast" else (copies > 3)


def test_a_tree_burdens_the_server_with_two_copies_however_many_nodes(run_all: Callable[..., list[Trial]]) -> None:
    parameters = {"hosts": 6, "dataset_bytes": "3 MB", "searches": 1, "staging": "tree", "work": "read"}
    (trial,) = run_all(workload="data-staging", parameters=parameters, link={"bandwidth": "100 Mbit/s"})
    staged = figures(trial)["data-staging.staged_bytes"]
    analysis = read_analysis(trial)
    assert analysis is not None
    hosts = analysis["matrices"]["hosts"]
    from_server = hosts["payload_bytes"][hosts["labels"].index("10.77.0.1")]
    assert 2 <= sum(from_server) / staged < 2.7
