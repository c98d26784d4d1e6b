"""A real Grid Engine with one sge_execd per virtual host, over ssh."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from tests.workers.clusters.grid_engine import GridEngine
from tests.workers.clusters.real_hosts import SshHosts
from tests.workers.clusters.trials import PlainLink, run
from workers import launchers
from workers.errors import ClusterUnavailable, HostsLost
from workers.launchers import Job, Session
from workers.trial.rank_usage import read_rank_usage

HELLO = "from mpi4py import MPI; MPI.COMM_WORLD.Barrier(); print(MPI.Get_processor_name())"


@pytest.fixture(scope="module")
def grid_engine(ssh_hosts: SshHosts) -> GridEngine:
    return GridEngine(ssh_hosts)


@pytest.fixture(scope="module")
def session(grid_engine: GridEngine) -> Iterator[Session]:
    with launchers.get("gridengine", grid_engine.settings()).open(host_count=3, link=PlainLink()) as session:
        yield session


def refusal(settings: dict[str, object], host_count: int = 1) -> str:
    with pytest.raises(ClusterUnavailable) as caught:
        launchers.get("gridengine", settings).open(host_count=host_count, link=PlainLink()).close()
    return str(caught.value)


def test_it_runs_trials_on_the_hosts_that_grid_engine_allots(
    session: Session, make_job: Callable[..., Job], grid_engine: GridEngine
) -> None:
    for _ in range(2):
        job = make_job(session, "/usr/bin/python3", "-c", HELLO)
        with session.capture() as capture:
            status, out, err = run(session, job)
            assert capture.stop().captured > 0
        assert status == 0, err
        assert sorted(out.split()) == ["n1", "n2", "n3"]
        assert {usage.host for usage in read_rank_usage(job.report_dir)} == {"n1", "n2", "n3"}
    assert session.facts["gridengine_job"].isdigit()
    assert session.facts["gridengine_job"] in grid_engine.ask("qstat")


def test_it_shows_a_waiting_job_and_cancels_it_when_cancelled(session: Session, grid_engine: GridEngine) -> None:
    heard: list[str] = []

    class Enough(Exception):
        pass

    def listen(what: str) -> None:
        heard.append(what)
        if len(heard) > 4:
            raise Enough

    with pytest.raises(Enough):  # all hosts are taken by the module's session
        launchers.get("gridengine", grid_engine.settings()).open(host_count=3, link=PlainLink(), tell=listen)
    assert any("Grid Engine job" in what and ": qw" in what for what in heard)
    assert "qw" not in grid_engine.ask("qstat")


def test_it_gives_the_hosts_back(session: Session, grid_engine: GridEngine, eventually: Callable[..., object]) -> None:
    session.close()
    eventually(lambda: grid_engine.ask("qstat") == "", explain=grid_engine.logs)


def test_the_hosts_come_back_when_the_worker_is_killed(
    grid_engine: GridEngine, make_job: Callable[..., Job], eventually: Callable[..., object]
) -> None:
    session = launchers.get("gridengine", grid_engine.settings()).open(host_count=2, link=PlainLink())
    assert run(session, make_job(session, "sleep", "2"))[0] == 0  # meanwhile the batch script has seen the agent
    session.launcher.queue.cancel = lambda job: None  # no process remains to do it
    for agent in session.agents.values():
        os.kill(agent.pid, 9)
    session.close()
    eventually(lambda: grid_engine.ask("qstat") == "", explain=grid_engine.logs)


def test_it_reports_that_grid_engine_took_the_job_away_and_leaves_nothing_running(
    grid_engine: GridEngine, make_job: Callable[..., Job], eventually: Callable[..., object]
) -> None:
    with launchers.get("gridengine", grid_engine.settings()).open(host_count=2, link=PlainLink()) as session:
        job = make_job(session, "sleep", "987")
        process = session.launch(job, stdout=job.workdir / "out", stderr=job.workdir / "err")
        number = session.facts["gridengine_job"]
        grid_engine.ask("qdel", number)
        with pytest.raises(HostsLost, match=rf"^Grid Engine job {number} on its nodes ended: ended"):
            process.wait(30.0)
        assert session.launcher.queue.has_ended(session.allocation.job)
    scratch = str(session.scratch)
    eventually(lambda: scratch not in grid_engine.ask("pgrep", "-af", "rank.py"))


def test_it_reports_that_the_slots_of_a_host_are_wrong(
    grid_engine: GridEngine, eventually: Callable[..., object]
) -> None:
    sentence = refusal(grid_engine.settings(slots_per_host=1), host_count=2)
    assert "Grid Engine gave 1 host to job" in sentence
    eventually(lambda: grid_engine.ask("qstat") == "", explain=grid_engine.logs)
