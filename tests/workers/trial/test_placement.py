"""Binding and distribution of ranks on real hosts, and where they ran."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from analysis.conclusions.sentences.findings import PLACEMENT
from analysis.mpi.placement import machines_of
from experiments.common import processors
from experiments.errors import InvalidSpec
from experiments.files import read_mpi_profile
from experiments.models import Cluster, State, Trial
from experiments.selectors.diagnosis import answers_of, diagnosis_of
from tests.workers.clusters.real_hosts import SshHosts
from tests.workers.clusters.trials import PlainLink, run
from tests.workers.hosts.trees import write_processors
from workers import launchers
from workers.hosts.remote_agent import RemoteAgent
from workers.launchers import Job

RING = {"workload": "ring", "repetitions": 1}
CPUS = len(os.sched_getaffinity(0))


def test_a_sweep_over_binding_records_where_ranks_ran(run_all: Callable[..., list[Trial]], ssh_hosts: SshHosts) -> None:
    settings = ssh_hosts.settings(shared_cores=False, transport="native", distribution="cyclic")
    Cluster.objects.create(slug="real", name="Real hosts", kind="ssh", settings=settings)
    trials = run_all(cluster="real", **RING, parameters={"ranks_per_host": 2}, sweep={"bind": ["none", "core"]})
    allowed = {}
    for trial in trials:
        assert trial.state == State.FINISHED, trial.message + trial.traceback
        tables = read_mpi_profile(trial)
        assert tables is not None
        allowed[trial.configuration.parameters["bind"]] = [row["allowed"] for row in tables["ranks"]]
        assert all({"cpus", "numa", "socket", "core"} <= row.keys() for row in tables["ranks"])
        assert trial.environment.facts["distribution"] == "cyclic"
        (machine,) = machines_of(tables["machines"])
        assert (machine.hosts, machine.allowed) == (("n1",), os.sched_getaffinity(0))
    assert len({*allowed["core"]}) == 2
    assert allowed["none"] == 2 * [allowed["none"][0]]
    assert trials[1].conditions["placement"] == "2 ranks ended on 2 cores; each may use 1 CPU"
    assert trials[0].conditions["placement"].endswith(f"each may use {CPUS} CPUs")


def test_trials_on_different_hosts_state_it_as_a_condition(
    run_all: Callable[..., list[Trial]], ssh_hosts: SshHosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All hosts are here: the kernel of the second one is a stand-in."""
    described = RemoteAgent.machine

    def other_kernel(agent: RemoteAgent, *question: Any) -> dict[str, Any]:
        facts = described(agent, *question)
        return {**facts, "kernel": "5.14.0-other"} if agent.host.endswith("n2") else facts

    Cluster.objects.create(slug="real", name="Real hosts", kind="ssh", settings=ssh_hosts.settings())
    (same,) = run_all(cluster="real", **RING, parameters={"hosts": 2})
    assert "different_hosts" not in same.conditions
    monkeypatch.setattr(RemoteAgent, "machine", other_kernel)
    (trial,) = run_all(cluster="real", **RING, parameters={"hosts": 2})
    assert trial.state == State.FINISHED, trial.message + trial.traceback
    assert trial.conditions["different_hosts"] == f"kernel 5.14.0-other on n2 (first host: {platform.release()})"


@pytest.mark.parametrize("library", ["openmpi", "mpich"])
def test_both_libraries_bind_and_take_the_hosts_in_turn(
    library: str, ssh_hosts: SshHosts, make_job: Callable[..., Job]
) -> None:
    settings = ssh_hosts.settings(mpi=library, shared_cores=False, bind="core", distribution="cyclic")
    with launchers.get("ssh", settings).open(host_count=2, link=PlainLink()) as session:
        where = "echo ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} $(hostname) $(grep Cpus_allowed_list /proc/self/status)"
        status, out, err = run(session, make_job(session, "sh", "-c", where, hosts=2, ranks_per_host=2))
    assert status == 0, err
    rows = sorted(line.split() for line in out.splitlines())
    assert [row[:2] for row in rows] == [["0", "n1"], ["1", "n2"], ["2", "n1"], ["3", "n2"]]
    assert {row[3] for row in rows} <= {str(cpu) for cpu in range(CPUS)}
    assert rows[0][3] != rows[2][3]


def test_ranks_of_the_test_bed_are_not_bound(submit: Callable[..., object]) -> None:
    swept = {"hosts": [2]}
    cases = {"bind": {"bind": "core", "sweep": swept}, "sweep.bind": {"sweep": {**swept, "bind": ["none", "socket"]}}}
    for field, changes in cases.items():
        with pytest.raises(InvalidSpec) as refused:
            submit(cluster="testbed", **RING, **changes)
        assert field in refused.value.by_path()


def test_ranks_of_this_machine_are_bound(run_all: Callable[..., list[Trial]]) -> None:
    (trial,) = run_all(cluster="local", **RING, parameters={"ranks_per_host": 2}, bind="core")
    assert trial.state == State.FINISHED, trial.message + trial.traceback
    assert trial.conditions["placement"].endswith("each may use 1 CPU")


def test_a_sweep_over_binding_ends_with_an_answer_on_its_page(
    run_all: Callable[..., list[Trial]], ssh_hosts: SshHosts, admin_client: Client
) -> None:
    """Hosts are one machine here: each binds its rank to the same core, and both poll."""
    settings = ssh_hosts.settings(shared_cores=False, transport="native")
    Cluster.objects.create(slug="real", name="Real hosts", kind="ssh", settings=settings)
    parameters = {"message_bytes": 8, "repetitions": 100, "hosts": 2}
    sweep = {"bind": ["none", "core"]}
    trials = run_all(cluster="real", workload="pingpong", parameters=parameters, sweep=sweep, repetitions=3)
    experiment = trials[0].experiment
    (answer,) = answers_of([experiment]).values()
    assert [figure.value for figure in answer.figures if figure.name == "best"] == ["no binding"], answer.sentence
    assert answer.sentence.endswith("as fast as binding to cores.")
    page = admin_client.get(f"{experiment.get_absolute_url()}diagnosis/").content.decode()
    assert "No binding is best" in page


PROGRAM = (
    "import json, os, sys; cpus = json.loads(sys.argv[1])[int(os.environ['OMPI_COMM_WORLD_RANK'])]; "
    "os.sched_setaffinity(0, [cpus[0]]); from mpi4py import MPI; "
    "[[os.sched_setaffinity(0, [cpu]), [[sum(range(20_000)), MPI.COMM_SELF.Barrier()] for _ in range(50)]] for cpu in cpus]"
)
ONE_CORE = {"cores": 1, "threads": 2}
TWO_SOCKETS = {"sockets": 2, "cores": 1}


@pytest.mark.parametrize(
    ("processors_here", "places", "names"),
    [
        pytest.param({}, [[0], [0]], {"shared_core"}, id="two ranks on one core"),
        pytest.param({}, [[0], [1]], set(), id="a core each"),
        pytest.param(ONE_CORE, [[0], [1]], {"threads_as_cores"}, id="hardware threads as cores"),
        pytest.param(TWO_SOCKETS, [[0], [0]], {"shared_core", "idle_socket"}, id="one socket of two"),
        pytest.param(TWO_SOCKETS, [[0], [1]], set(), id="a socket each"),
        pytest.param(TWO_SOCKETS, [[0, 1, 0], [1]], {"migrated_rank"}, id="there and back"),
    ],
)
def test_trials_find_ranks_that_are_misplaced(
    processors_here: dict[str, int],
    places: list[list[int]],
    names: set[str],
    run_all: Callable[..., list[Trial]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Real ranks; machines that are not here are trees of /sys."""
    if processors_here:
        monkeypatch.setattr(processors, "SYSTEM", write_processors(tmp_path, **processors_here))
    program = ["/usr/bin/python3", "-c", PROGRAM, json.dumps(places)]
    parameters = {"program": program, "extract": [], "ranks_per_host": 2}
    (trial,) = run_all(cluster="local", workload="command", parameters=parameters, repetitions=1)
    assert trial.state == State.FINISHED, trial.message + trial.traceback
    assert trial.conditions.get("placement_findings", {}).keys() == names
    tables = read_mpi_profile(trial)
    assert tables is not None
    assert [row["cpus"] for row in tables["ranks"]] == [sorted(set(cpus)) for cpus in places]
    rules = {fact.rule for fact in diagnosis_of(trial.experiment).facts}
    assert rules & set(PLACEMENT) == names
