"""The state machine of a trial: every legal move, and no other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone

from experiments.errors import StaleTrial
from experiments.models import ACTIVE, Lease, State, Trial
from tests.experiments import factories
from tests.experiments.factories import RESULT

pytestmark = pytest.mark.django_db

MOVES: dict[str, Callable[[Trial], Any]] = {
    "start_running": lambda trial: trial.start_running(command=["lmp"], conditions={}),
    "start_analysing": lambda trial: trial.start_analysing(),
    "finish": lambda trial: trial.finish(RESULT),
    "finish_after_all": lambda trial: trial.finish_after_all(RESULT),
    "fail": lambda trial: trial.fail("It exited with status 1."),
    "error": lambda trial: trial.error("KeyError: 'x'", "Traceback ..."),
    "end_cancelled": lambda trial: trial.end_cancelled(),
    "mark_lost": lambda trial: trial.mark_lost("Its worker is gone."),
}
LEGAL = {
    ("preparing", "start_running"): "running",
    ("running", "start_analysing"): "analysing",
    ("analysing", "finish"): "finished",
    ("failed", "finish_after_all"): "finished",
    **{(state, "fail"): "failed" for state in ACTIVE},
    **{(state, "error"): "errored" for state in ACTIVE},
    **{(state, "end_cancelled"): "cancelled" for state in ACTIVE},
    **{(state, "mark_lost"): "lost" for state in ACTIVE},
}


def trial_in(state: str) -> Trial:
    """Return a trial of a worker, put into ``state``."""
    factories.experiment(retries=0)
    trial = factories.claimed()
    Trial.objects.filter(pk=trial.pk).update(state=state)
    if state not in ACTIVE:
        Lease.objects.all().delete()
    return trial


@pytest.mark.parametrize("state", State.values)
@pytest.mark.parametrize("move", MOVES)
def test_it_makes_the_legal_moves_and_refuses_all_others(state: str, move: str) -> None:
    trial = trial_in(state)
    expected = LEGAL.get((state, move))
    if expected is None:
        with pytest.raises(StaleTrial):
            MOVES[move](trial)
        assert Trial.objects.get(pk=trial.pk).state == state
        assert not trial.measurements.exists()
    else:
        MOVES[move](trial)
        assert Trial.objects.get(pk=trial.pk).state == expected == trial.state


@pytest.mark.parametrize("move", MOVES)
def test_it_belongs_to_the_worker_that_claimed_it(move: str) -> None:
    factories.experiment()
    factories.analysing("host:1:1")
    stranger = Trial.objects.active().get()
    stranger.worker = "host:2:2"
    with pytest.raises(StaleTrial):
        MOVES[move](stranger)
    assert Trial.objects.get(pk=stranger.pk).state == State.ANALYSING


def test_it_keeps_the_time_of_every_state() -> None:
    factories.experiment()
    before = timezone.now()
    trial = factories.finished()
    trial.refresh_from_db()
    times = [trial.queued_at, trial.preparing_at, trial.running_at, trial.analysing_at, trial.ended_at]
    assert all(times)
    assert times == sorted(times, key=lambda time: time or before)
    assert trial.is_over


@pytest.mark.parametrize("move", ["finish", "fail", "error", "end_cancelled", "mark_lost"])
def test_it_frees_its_hosts_and_its_progress_at_the_end(move: str) -> None:
    factories.experiment()
    trial = factories.analysing()
    trial.beat({"elapsed_s": 1})
    assert Lease.objects.filter(trial=trial).exists()
    MOVES[move](trial)
    trial.refresh_from_db()
    assert not Lease.objects.exists()
    assert trial.progress == {}
    assert trial.ended_at is not None
    if move == "fail":
        assert trial.message == "It exited with status 1."
    if move == "error":
        assert trial.traceback == "Traceback ..."


def test_it_becomes_stale_for_its_worker_once_it_is_lost() -> None:
    factories.experiment()
    trial = factories.running()
    Trial.objects.get(pk=trial.pk).mark_lost("Its worker is silent.")
    with pytest.raises(StaleTrial):
        trial.beat()
    with pytest.raises(StaleTrial):
        trial.start_analysing()
    assert Trial.objects.get(pk=trial.pk).message == "Its worker is silent."


@pytest.mark.parametrize("output", ["a\0b", "half \ud800", "\0" * 5000])
def test_it_stores_whatever_a_program_printed(output: str) -> None:
    factories.experiment()
    trial = factories.running()
    trial.beat({"stdout_tail": output})
    trial.fail(f"It said: {output}")
    trial.refresh_from_db()
    assert trial.state == State.FAILED
    assert trial.message == "It said: " + "".join("\ufffd" if c in "\0\ud800" else c for c in output)
