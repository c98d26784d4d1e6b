"""A step of the machine's clock loses no trial and ends none."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import psutil
import pytest
from django.db.models.functions import Now

from experiments.models import Cluster, Experiment, Lease, Measurement, State, Trial
from tests.conftest import Services
from tests.worker_process import CeleryWorker
from tests.workers.faults.stepped_clock import STEPS, SteppedClock, library, reap_with_clock
from workers import queue, reaper
from workers.worker_identity import identity

ROUNDS = 6  # more than a silent trial survives
LIMIT_S = 90.0
REAP_BESIDE_BEATS = f"""\
import django
django.setup()
from experiments.models import Trial
from workers import reaper
print("lost", sum(reaper.reap() for _ in range({ROUNDS}) if Trial.objects.get().beat() is False))
"""


@pytest.fixture
def worker(
    empty_redis: object, start_celery_worker: Callable[..., CeleryWorker], clock: SteppedClock
) -> Iterator[CeleryWorker]:
    """A worker whose clock the test may set."""
    started = start_celery_worker(variables=clock.variables)
    yield started
    started.kill()


def wait_until(condition: Callable[[], object], what: str) -> None:
    """With the reaper at work meanwhile, more often than in truth."""
    deadline = time.monotonic() + LIMIT_S
    sweep = 0.0
    while not condition():
        now = time.monotonic()
        assert now < deadline, f"waited {LIMIT_S:g} s in vain until {what}"
        if now >= sweep:
            sweep = now + 0.5
            assert reaper.reap() == 0
        time.sleep(0.02)


def computing(worker: CeleryWorker) -> dict[str, psutil.Process]:
    """The programs of the worker's trial by name; none before its ranks compute."""
    by_name = {}
    for process in psutil.Process(worker.pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            by_name[process.name()] = process
    return by_name if "lmp" in by_name and by_name["lmp"].cpu_times().user > 0 else {}


def require_true_clock(programs: dict[str, psutil.Process]) -> None:
    """Require that the trial's environment has nothing of the worker's clock."""
    for name in ("mpirun", "lmp", "recorder"):
        environment = programs[name].environ()
        assert "STEPPED_CLOCK" not in environment
        assert str(library()) not in environment.get("LD_PRELOAD", "")


@pytest.mark.timeout(240)  # eight seconds each, twenty beside other work
@pytest.mark.parametrize("step", STEPS, ids=str)
def test_a_worker_whose_clock_is_set_in_the_middle_of_a_trial_measures_on(
    step: timedelta, submit: Callable[..., Experiment], worker: CeleryWorker, clock: SteppedClock
) -> None:
    experiment = submit(parameters={"molecules": 1000, "steps": 60}, retries=0, disturbed="keep")
    trials = experiment.trials
    began = time.monotonic()
    queue.wake_workers(experiment.cluster_id)
    programs: dict[str, psutil.Process] = {}
    wait_until(lambda: programs.update(computing(worker)) or programs, "the ranks compute")
    require_true_clock(programs)
    clock.set(step)
    assert trials.get().state == State.RUNNING
    wait_until(lambda: trials.get().is_over, "the trial is over")
    passed_s = time.monotonic() - began

    trial = trials.get()
    assert trial.state == State.FINISHED, trial.message + trial.traceback
    assert len(trial.conditions["disturbances"]) == 1, "the step of the clock"
    wait_until(lambda: f"{datetime.now(UTC) + step:%Y-%m-%d}T" in worker.output(), "the worker's log has the new date")
    rows = list(Measurement.objects.filter(trial=trial).values_list("scope", "metric"))
    assert len(rows) == len(set(rows)) > 0
    values = dict(trial.measurements.filter(scope="all").values_list("metric", "value"))
    assert values["water.loop_time_s"] <= values["elapsed_s"] <= passed_s
    files = trial.artifacts
    assert files.exists()
    assert not files.exclude(created_at__gte=trial.preparing_at, created_at__lte=Now()).exists()
    assert not Lease.objects.exists()

    assert worker.wait_until_idle(timeout_s=LIMIT_S)  # it would ring for itself
    after = submit()
    queue.wake_workers(after.cluster_id)  # by a process with the true clock
    wait_until(lambda: after.trials.get().is_over, "the next trial is over")
    assert after.trials.get().state == State.FINISHED


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_a_reaper_two_days_off_finds_no_living_trial_lost(
    step: timedelta, submit: Callable[..., Experiment], services: Services, clock: SteppedClock
) -> None:
    experiment = submit()
    trial = Trial.claim_next(Cluster.objects.get(pk=experiment.cluster_id), identity())
    assert trial is not None
    clock.set(step)
    assert reap_with_clock(clock, services, REAP_BESIDE_BEATS) == "lost 0"
    trial.refresh_from_db()
    assert trial.state == State.PREPARING


def test_silence_is_counted_in_rounds_not_in_seconds(submit: Callable[..., Experiment]) -> None:
    experiment = submit()
    trial = Trial.claim_next(Cluster.objects.get(pk=experiment.cluster_id), identity())
    assert trial is not None
    assert [trial.record_missed_heartbeat() for _ in range(5)] == [False, False, False, False, True]
    trial.beat()
    assert trial.record_missed_heartbeat() is False
