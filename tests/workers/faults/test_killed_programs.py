"""SIGKILL of each program of a trial: the trial reports it, the next one succeeds."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

import psutil
import pytest

from experiments.models import Experiment, Lease, State, Trial
from workers import tasks
from workers.trial import pipeline

LIMIT_S = 60.0


@pytest.fixture
def run_while(submit: Callable[..., Experiment], empty_redis: object) -> Iterator[Callable[[str], tuple[Trial, Trial]]]:
    """Runs two trials; kills the first program of a name that the first trial starts."""

    def run(name: str) -> tuple[Trial, Trial]:
        experiment = submit(repetitions=2, retries=0)
        killer = threading.Thread(target=kill_first, args=(name,))
        killer.start()
        tasks.work(experiment.cluster_id)
        killer.join()
        first, second = experiment.trials.order_by("position")
        return first, second

    yield run
    pipeline.POOL.close()


def kill_first(name: str) -> None:
    """Kill once the ranks compute, and so everything else runs."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        with contextlib.suppress(psutil.NoSuchProcess):
            by_name = {process.name(): process for process in alive()}
            if "lmp" in by_name and by_name["lmp"].cpu_times().user > 0 and name in by_name:
                by_name[name].kill()
                return
        time.sleep(0.01)


def alive() -> list[psutil.Process]:
    processes = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.status() != psutil.STATUS_ZOMBIE:
                processes.append(process)
    return processes


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("lmp", "was killed by SIGKILL"),
        ("mpirun", "The launch command of"),
        ("unshare", "The agent of the cluster"),
    ],
)
def test_the_trial_fails_with_who_was_killed(
    program: str, words: str, run_while: Callable[[str], tuple[Trial, Trial]]
) -> None:
    first, second = run_while(program)
    assert first.state in (State.FAILED, State.LOST), first.traceback
    assert words in first.message
    assert not first.measurements.exists()
    assert second.state == State.FINISHED, second.message + second.traceback
    assert not Lease.objects.exists()


def test_a_killed_capture_makes_the_packets_unusable_but_not_the_run(
    run_while: Callable[[str], tuple[Trial, Trial]],
) -> None:
    first, second = run_while("recorder")
    assert first.state == State.FINISHED, first.message + first.traceback
    assert first.trust == "unusable"
    assert "the capture tool ended before the run did" in first.trust_reasons
    assert first.measurements.filter(metric="elapsed_s").exists()
    assert second.state == State.FINISHED
    assert second.trust != "unusable", second.trust_reasons
