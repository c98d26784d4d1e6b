"""`allocation: per experiment`: one job of a real Slurm, and its end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection, connections

from experiments.errors import InvalidSpec
from experiments.models import Cluster, Experiment, Lease, State, Trial
from tests.workers.clusters.real_hosts import Slurm
from workers.launchers.remote import RemoteJob, RemoteSession
from workers.launchers.schedulers.launcher import Allocation, SchedulerLauncher
from workers.trial import pipeline
from workers.trial.pipeline import alone_on

SOON = "from mpi4py import MPI\nMPI.COMM_WORLD.Barrier()\nprint('answer 42', flush=True)\n"
LATE = SOON.replace("MPI.COMM_WORLD.Barrier()", "import time; time.sleep(4)")
LIMIT_S = 100.0


@pytest.fixture
def farm(slurm: Slurm, transactional_db: None) -> Cluster:
    return Cluster.objects.create(slug="farm", name="Farm", kind="slurm", settings=slurm.settings())


def spec_of(script: str, **fields: Any) -> dict[str, Any]:
    shared = {"cluster": "farm", "workload": "script", "allocation": "per experiment", "capture": {"enabled": False}}
    return {**shared, "parameters": {"script": script}, "profile": "none", **fields}


def jobs_of(trials: list[Trial]) -> set[str]:
    return {trial.conditions["slurm_job"] for trial in trials}


@contextmanager
def beside(act: Callable[[], object]) -> Iterator[Future[object]]:
    """Let something happen while trials run."""

    def once() -> object:
        try:
            return act()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as thread:
        yield thread.submit(once)


def running_as(number: int) -> Trial:
    """The trial that runs as the job's trial of this number, as soon as it does."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        for trial in Trial.objects.filter(state=State.RUNNING):
            if trial.conditions["allocation"]["trial"] == number:
                return trial
        threading.Event().wait(0.05)
    pytest.fail(f"no such trial ran: {list(Trial.objects.values_list('state', 'message'))}")


def test_trials_of_all_sizes_run_in_one_job(
    run_all: Callable[..., list[Trial]], script_workload: object, farm: Cluster, slurm: Slurm
) -> None:
    before = len(slurm.ask("squeue", "-h", "--states=all").splitlines())
    trials = run_all(**spec_of(SOON, sweep={"hosts": [1, 3, 2]}, repetitions=2))
    assert [trial.state for trial in trials] == [State.FINISHED] * 6, [trial.message for trial in trials]
    (job,) = jobs_of(trials)
    assert [trial.conditions["allocation"] for trial in trials] == [
        {"job": job, "hosts": 3, "trial": number} for number in range(1, 7)
    ]
    assert [len(trial.conditions["hosts"]) for trial in trials] == [1, 3, 2, 2, 3, 1]
    assert len(slurm.ask("squeue", "-h", "--states=all").splitlines()) == before + 1
    assert job not in slurm.ask("squeue", "-h", "--states=PENDING,RUNNING")
    assert not Lease.objects.exists()


def test_a_trial_whose_job_is_taken_away_runs_again_uncounted(
    run_all: Callable[..., list[Trial]], script_workload: object, farm: Cluster, slurm: Slurm
) -> None:
    heard: list[str] = []
    requeue = Trial.requeue

    def listening(trial: Trial, reason: str = "") -> bool:
        heard.append(reason)
        return requeue(trial, reason)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trial, "requeue", listening)
        with beside(lambda: slurm.ask("scancel", running_as(2).conditions["slurm_job"])) as cancelled:
            trials = run_all(**spec_of(LATE, sweep={"hosts": [1]}, repetitions=3, retries=0))
        cancelled.result()
    assert [(trial.state, trial.attempt) for trial in trials] == [(State.FINISHED, 1)] * 3, [t.message for t in trials]
    first, second, third = trials
    assert second.conditions["slurm_job"] != first.conditions["slurm_job"]
    assert jobs_of([second, third]) == {second.conditions["slurm_job"]}
    assert [trial.message for trial in trials] == [""] * 3
    assert heard == [
        f"Queued again, no attempt lost: Slurm job {first.conditions['slurm_job']} on {first.conditions['hosts'][0]} ended: CANCELLED."
    ]


def gone(slurm: Slurm, job: str) -> None:
    """Take a job away and wait until Slurm says so."""
    slurm.ask("scancel", job)
    eventually(lambda: not slurm.ask("squeue", "-h", "--states=RUNNING", f"--jobs={job}"))


def eventually(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not is_so():
        assert time.monotonic() < deadline
        threading.Event().wait(0.05)


def taken_at(moment: str, slurm: Slurm, patch: pytest.MonkeyPatch) -> list[str]:
    """Have the job taken away once during the second trial; return the jobs."""
    taken: list[str] = []

    def take(session: RemoteSession) -> bool:
        allocation = session.facts["allocation"]
        if taken or allocation["trial"] != 2:
            return False
        taken.append(allocation["job"])
        return True

    def before(name: str) -> None:
        plain = getattr(RemoteSession, name)

        def first(session: RemoteSession, *rest: Any, **named: Any) -> Any:
            if take(session):
                gone(slurm, taken[0])
                eventually(lambda: not session.alive())
            return plain(session, *rest, **named)

        patch.setattr(RemoteSession, name, first)

    if moment in ("launch", "sample", "prepared"):
        before(moment)
    elif moment == "opening":  # of the session of another size in the same job
        plain_open = SchedulerLauncher.open_on

        def opening(launcher: SchedulerLauncher, allocation: Allocation, host_count: int) -> Any:
            if host_count == 2 and not taken:
                taken.append(allocation.job)
                gone(slurm, allocation.job)
            return plain_open(launcher, allocation, host_count)

        patch.setattr(SchedulerLauncher, "open_on", opening)
    else:  # Slurm's signal reaches the launch command, which reports its end before the connection has any
        plain_wait, plain_collect = RemoteJob.wait, RemoteSession.collect

        def waiting(process: RemoteJob, timeout_s: float | None = None) -> int | None:
            if take(process._session):
                process.terminate(5.0)
            return plain_wait(process, timeout_s)

        def collecting(session: RemoteSession, *jobs: Any) -> None:
            plain_collect(session, *jobs)
            if taken == [session.facts["allocation"]["job"]]:
                gone(slurm, taken[0])

        patch.setattr(RemoteJob, "wait", waiting)
        patch.setattr(RemoteSession, "collect", collecting)
    return taken


@pytest.mark.parametrize("moment", ["opening", "prepared", "launch", "sample", "its end by a signal"])
def test_it_runs_again_whatever_was_asked_of_its_hosts_when_they_were_gone(
    run_all: Callable[..., list[Trial]], script_workload: object, farm: Cluster, slurm: Slurm, moment: str
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        taken = taken_at(moment, slurm, patch)
        trials = run_all(**spec_of(SOON, sweep={"hosts": [1, 2]}, repetitions=1, retries=0))
    assert len(taken) == 1
    assert [(trial.state, trial.attempt) for trial in trials] == [(State.FINISHED, 1)] * 2, [t.message for t in trials]
    first, second = trials
    assert first.conditions["slurm_job"] == taken[0] != second.conditions["slurm_job"]


def test_a_job_that_ends_under_its_first_trial_costs_an_attempt(
    run_all: Callable[..., list[Trial]], script_workload: object, farm: Cluster, slurm: Slurm
) -> None:
    with beside(lambda: slurm.ask("scancel", running_as(1).conditions["slurm_job"])) as cancelled:
        trials = run_all(**spec_of(LATE, sweep={"hosts": [1]}, retries=1))
    cancelled.result()
    ended = [(trial.attempt, trial.state) for trial in trials]
    assert sorted(ended) == [(1, State.LOST), (2, State.FINISHED)]


def test_cancelling_one_trial_leaves_the_job_to_the_others(
    run_all: Callable[..., list[Trial]], script_workload: object, farm: Cluster
) -> None:
    with beside(lambda: running_as(1).cancel()) as cancelled:
        trials = run_all(**spec_of(LATE, sweep={"hosts": [2]}, repetitions=2))
    assert cancelled.result() == 1
    assert [trial.state for trial in trials] == [State.CANCELLED, State.FINISHED]
    assert len(jobs_of(trials)) == 1


def test_cancelling_the_experiment_gives_the_job_back(
    run_all: Callable[..., list[Trial]], script_workload: object, farm: Cluster, slurm: Slurm
) -> None:
    with beside(lambda: running_as(1).experiment.cancel()):
        trials = run_all(**spec_of(LATE, sweep={"hosts": [2]}, repetitions=3))
    assert [trial.state for trial in trials] == [State.CANCELLED] * 3
    assert slurm.ask("squeue", "-h", "--states=PENDING,RUNNING") == ""


def test_a_second_worker_leaves_the_cluster_to_the_first(
    submit: Callable[..., Experiment], script_workload: object, farm: Cluster
) -> None:
    submit(**spec_of(SOON))
    with alone_on(farm) as first:
        assert first
        with beside(lambda: pipeline.run_waiting(farm)) as second:
            assert second.result() == 0
    assert Trial.objects.get().state == State.QUEUED
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")
        assert cursor.fetchone() == (0,)


def test_shared_job_without_a_scheduler_is_refused(submit: Callable[..., Experiment], script_workload: object) -> None:
    with pytest.raises(InvalidSpec, match="no scheduler allots the hosts"):
        submit(**spec_of(SOON, cluster="local"))
