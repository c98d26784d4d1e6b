"""SIGKILL of the worker in a trial: nothing is left, it runs again."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable

import psutil
import pytest

from experiments.files import trial_directory
from experiments.models import Experiment, Lease, Measurement, State, Trial
from tests.worker_process import CeleryWorker
from workers import queue, reaper

DEADLINE_S = 100.0
LONG_WATER = {
    "workload": "water",
    "parameters": {"molecules": 64, "steps": 1_000_000},
    "sweep": {"hosts": [2]},
    "time_limit_s": 300,
}


RUNNING = {"mpirun", "lmp", "recorder"}


def wait_until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"waited {DEADLINE_S:g} s in vain until {what}"
        time.sleep(0.05)


def family(worker: CeleryWorker) -> list[psutil.Process]:
    """Return all descendants of the worker, not those of other tests' workers."""
    return psutil.Process(worker.pid).children(recursive=True)


def names(processes: list[psutil.Process]) -> set[str]:
    result = set()
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            result.add(process.name())
    return result


def own_namespaces(processes: list[psutil.Process]) -> set[str]:
    """The network namespaces that these processes made, by the text of their links."""
    return {expected for process in processes if (expected := namespace(process.pid)) is not None} - {
        namespace(os.getpid())
    }


def namespace(pid: int) -> str | None:
    try:
        return os.readlink(f"/proc/{pid}/ns/net")  # noqa: PTH115 (the link's text is the name)
    except OSError:
        return None


def inhabited() -> set[str | None]:
    return {namespace(pid) for pid in psutil.pids()}


@pytest.mark.parametrize("moment", [State.PREPARING, State.RUNNING])
def test_it_leaves_nothing_and_runs_the_trial_again(
    moment: State,
    submit: Callable[..., Experiment],
    empty_redis: object,
    start_celery_worker: Callable[..., CeleryWorker],
) -> None:
    experiment = submit(**LONG_WATER, retries=1)
    worker = start_celery_worker()
    queue.wake_workers(experiment.cluster_id)
    trials = experiment.trials
    wait_until(lambda: trials.filter(state=moment).exists(), f"the trial is {moment}")
    if moment == State.RUNNING:
        wait_until(lambda: trials.get().progress.get("packets"), "packets flow")
        wait_until(lambda: names(family(worker)) >= RUNNING, "the programs of the trial are running")
    processes = family(worker)
    namespaces = own_namespaces(processes)
    if moment == State.RUNNING:
        assert len(namespaces) == 3, "two hosts and the bridge"

    worker.kill()

    wait_until(lambda: not any(process.is_running() for process in processes), "every process of the trial is gone")
    wait_until(lambda: not namespaces & inhabited(), "every namespace of the trial is gone")
    wait_until(reaper.reap, "the reaper finds the lost trial")
    lost, again = trials.order_by("attempt")
    assert (lost.state, lost.superseded) == (State.LOST, True)
    assert (again.state, again.attempt) == (State.QUEUED, 2)
    assert not Lease.objects.exists()
    assert not Measurement.objects.filter(trial=lost).exists()
    stored = {path.name for path in trial_directory(lost).glob("*")}
    assert stored <= {"stdout.txt", "stderr.txt", "capture.pcapng.zst", "mpi-profile.json.zst"}
    Trial.objects.cancel()
