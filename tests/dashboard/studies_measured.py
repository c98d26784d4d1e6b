"""Experiments like the published ones, stored as if they had run."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import Any, Final

from analysis.sensitivity import Link
from experiments.library import load_defaults
from experiments.models import Cluster, Experiment, Project, Trial, TrialResult
from experiments.specification import parse
from tests.analysis.sensitivity.programs import Program
from tests.kept_rows import KeptRows

READERS: dict[str, Any] = {
    "name": "Readers",
    "workload": "concurrent-readers",
    "parameters": {"hosts": 3},
    "sweep": {"link.bandwidth": ["10 Mbit/s", "1 Gbit/s"], "jobs": [1, 10, 20]},
    "repetitions": 1,
}
STAGING: dict[str, Any] = {
    "name": "Staging",
    "workload": "data-staging",
    "sweep": {"staging": ["pull", "multicast"], "hosts": [2, 3, 5, 7]},
    "repetitions": 2,
}
LADDER: dict[str, Any] = {
    "name": "Ladder",
    "workload": "hpl",
    "parameters": {"hosts": 2},
    "sweep": {"ns": [1000, 2000, 2000], "nb": [80, 80, 160]},
    "zip": [["ns", "nb"]],
    "order": "sequential",
    "repetitions": 1,
}
FACTORS: dict[str, Any] = {**LADDER, "sweep": {"ns": [1000, 2000], "nb": [80, 160]}, "zip": []}


def measured(
    project: Project,
    specification: Mapping[str, Any],
    values: Callable[[Mapping[str, Any]], dict[str, float]],
    tables: Callable[[Mapping[str, Any]], dict[str, Any]] = lambda parameters: {},
) -> Experiment:
    """Submit a specification and finish its trials with ``values(parameters)``."""
    experiment = Experiment.submit(parse(dict(specification)), project=project, owner=None)
    cluster = Cluster.objects.get(slug="testbed")
    while (trial := Trial.claim_next(cluster, "tests:1:1")) is not None:
        trial.start_running(command=["mpirun"], conditions={"cores": 2})
        trial.start_analysing()
        parameters = trial.configuration.parameters
        trial.finish(TrialResult({"all": values(parameters)}, {}, "good", tables=tables(parameters)))
    return experiment


def read(parameters: Mapping[str, Any]) -> dict[str, float]:
    jobs, link = parameters["jobs"], parameters["link.bandwidth"]
    wall = 0.1 * jobs + 0.9 * jobs * (link < 1e8)
    return {
        "elapsed_s": wall + 2,
        "concurrent-readers.job_wall_s": wall,
        "concurrent-readers.server_throughput_bps": min(9.4e6 * jobs / wall, 0.94 * link),
        "concurrent-readers.client_cpu_max_share": 0.02 * jobs,
        "concurrent-readers.server_cpu_max_share": 0.03 * jobs,
    }


def stage(parameters: Mapping[str, Any]) -> dict[str, float]:
    nodes = parameters["hosts"] - 1
    first = 0.1 + 0.4 * (nodes if parameters["staging"] == "pull" else 1)
    return {
        "elapsed_s": first + 2,
        "data-staging.nodes": nodes,
        "data-staging.first_search_s": first,
        "data-staging.later_search_s": 0.1,
        "data-staging.run_s": first + 0.2,
        "data-staging.aggregate_bandwidth_Bps": 4e6 * nodes / first,
        "data-staging.utilisation": 0.3 / (first + 0.2),
    }


def solve(parameters: Mapping[str, Any]) -> dict[str, float]:
    return {"elapsed_s": 5.0, "hpl.gflops": parameters["ns"] / 1000 * (1.5 if parameters["nb"] == 160 else 1.0)}


NETWORK: dict[str, Any] = {
    "name": "Needs",
    "workload": "water",
    "parameters": {"molecules": 216, "steps": 50, "hosts": 2},
    "study": "network",
    "link": {"bandwidth": "1 Gbit/s"},
    "repetitions": 2,
}
NEEDY: Final = Program(messages=2000.0, bits=40e6)
"""Three seconds of computing, 2000 messages in a row, 40 Mbit while nothing else proceeds."""
_SCATTER: Final = itertools.cycle((0.99, 1.01, 1.005, 0.995))


def needing(parameters: Mapping[str, Any]) -> dict[str, float]:
    link = Link(parameters["link.delay"], parameters["link.bandwidth"])
    return {"elapsed_s": NEEDY.elapsed(link) * parameters["hosts"] / 2 * next(_SCATTER)}


_NEEDS: Final = KeptRows(lambda: measured(load_defaults(), NETWORK, needing))


def needs() -> Experiment:
    """The network study of ``NEEDY``, in an empty repository copied back at once."""
    _NEEDS.restore()
    return Experiment.objects.get(slug="needs")


SCALING: dict[str, Any] = {
    **NETWORK,
    "name": "Scaling over links",
    "parameters": {"molecules": 216, "steps": 50},
    "sweep": {"hosts": [1, 2, 4]},
    "repetitions": 1,
}


def scaling(parameters: Mapping[str, Any]) -> dict[str, float]:
    """8 s of work divided among hosts, 1000 sequential messages per two hosts."""
    hosts = parameters["hosts"]
    program = Program(computing_s=8 / hosts, messages=1000.0 * (hosts // 2), bits=10e6 * (hosts - 1))
    link = Link(parameters["link.delay"], parameters["link.bandwidth"])
    return {"elapsed_s": program.elapsed(link) * next(_SCATTER)}


SIZES: dict[str, Any] = {
    "name": "Water by size",
    "workload": "water",
    "parameters": {"molecules": 64},
    "sweep": {"hosts": [1, 2, 4]},
    "repetitions": 1,
    "control": False,
}


def profiled(parameters: Mapping[str, Any]) -> dict[str, float]:
    """One rank of every host waits longer, the more there are."""
    hosts = parameters["hosts"]
    balance, communication = 1.0, 1.0 - 0.15 * (hosts - 1)
    return {
        "elapsed_s": 10.0 / hosts,
        "mpi_window_s": 8.0 / hosts,
        "mpi_useful_s": 8.0 + hosts - 1,
        "mpi_load_balance": balance,
        "mpi_communication_efficiency": communication,
        "mpi_parallel_efficiency": balance * communication,
        "mpi_useful_share": 0.5,
        "mpi_no_core_share": 0.1,
        "mpi_on_cpu_share": 0.3,
        "mpi_blocked_share": 0.1,
        "mpi_profile_cost_share": 0.002,
    }
