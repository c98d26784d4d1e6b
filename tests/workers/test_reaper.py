"""Workers that the reaper gives up, and the time until it does."""

from __future__ import annotations

import pytest

from experiments.models import Lease, State, Trial
from experiments.models.trial import MISSED_ROUNDS_UNTIL_LOST
from tests.experiments import factories
from workers.reaper import HUNG_ROUNDS, reap
from workers.trial.heartbeat import ENDING
from workers.worker_identity import identity

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("worker", "rounds"), [("elsewhere:1:1", MISSED_ROUNDS_UNTIL_LOST), (identity(), HUNG_ROUNDS)], ids=["far", "here"]
)
def test_it_waits_longer_for_a_silent_worker_that_it_sees_live(worker: str, rounds: int) -> None:
    factories.experiment(retries=0)
    trial = factories.running(worker)
    assert [reap() for _ in range(rounds + 1)] == [0] * rounds + [1]
    assert Trial.objects.get(pk=trial.pk).state == State.LOST


def test_it_gives_up_a_process_of_this_machine_that_is_gone_at_once() -> None:
    factories.experiment(retries=0)
    host, _, _ = identity().partition(":")
    factories.running(f"{host}:{2**22 + 1}:1")
    assert reap() == 1


def test_trial_of_a_stopped_and_killed_worker_costs_no_attempt() -> None:
    """As while its capture was analysed longer than the worker had time."""
    factories.experiment(retries=0)
    host, _, _ = identity().partition(":")
    trial = factories.running(f"{host}:{2**22 + 1}:1")
    Trial.objects.filter(pk=trial.pk).update(progress={"packets": 7, ENDING: True})
    before = Trial.objects.count()
    assert reap() == 0
    trial.refresh_from_db()
    assert (trial.state, trial.attempt, trial.worker, trial.progress) == (State.QUEUED, 1, "", {})
    assert Trial.objects.count() == before
    assert not Lease.objects.exists()


def test_cancelled_trial_is_not_run_again() -> None:
    factories.experiment(retries=0)
    host, _, _ = identity().partition(":")
    trial = factories.running(f"{host}:{2**22 + 1}:1")
    trial.cancel()
    Trial.objects.filter(pk=trial.pk).update(progress={ENDING: True})
    assert reap() == 1
    assert Trial.objects.get(pk=trial.pk).state == State.LOST
