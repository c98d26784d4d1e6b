"""Heartbeats, the reaper's count, lost trials and new attempts."""

from __future__ import annotations

import pytest

from experiments.errors import StaleTrial
from experiments.models import Cluster, Lease, State, Trial
from experiments.models.trial import MISSED_ROUNDS_UNTIL_LOST
from experiments.specification import parse
from tests.experiments import factories

pytestmark = pytest.mark.django_db


def test_beat_stores_progress_and_returns_a_requested_stop() -> None:
    factories.experiment()
    trial = factories.running()
    assert trial.beat({"elapsed_s": 3, "packets": 7}) is False
    assert Trial.objects.get(pk=trial.pk).progress == {"elapsed_s": 3, "packets": 7}
    trial.cancel()
    assert trial.beat() is True


def test_it_is_silent_only_after_the_set_number_of_rounds_without_a_beat() -> None:
    factories.experiment()
    trial = factories.running()
    for _ in range(3):  # each beat begins the count anew
        trial.beat()
        assert [trial.record_missed_heartbeat() for _ in range(MISSED_ROUNDS_UNTIL_LOST)] == [
            False
        ] * MISSED_ROUNDS_UNTIL_LOST
    assert trial.record_missed_heartbeat() is True
    trial.fail("It ended.")
    assert trial.record_missed_heartbeat() is False


def test_a_lost_trial_gets_a_new_attempt() -> None:
    experiment = factories.experiment(retries=1)
    lost = factories.running()
    attempt = lost.mark_lost("Its worker is gone.")
    assert attempt is not None
    assert (attempt.state, attempt.attempt) == (State.QUEUED, 2)
    for name in ("configuration_id", "repetition", "position"):
        assert getattr(attempt, name) == getattr(lost, name)
    assert lost.pk not in experiment.trials.current().values_list("pk", flat=True)
    assert experiment.trials.current().count() == 4


def test_it_gets_no_more_attempts_than_the_experiment_allows() -> None:
    experiment = factories.experiment(retries=2, sweep={"hosts": [1]}, repetitions=1)
    for number in (1, 2, 3):
        trial = factories.claimed()
        assert trial.attempt == number
        assert (trial.mark_lost("Gone.") is None) == (number == 3)
    assert experiment.trials.current().get().state == State.LOST


@pytest.mark.parametrize("change", ["cancelled", "left the design"])
def test_it_gets_no_new_attempt_when_none_is_wanted(change: str) -> None:
    experiment = factories.experiment(retries=5, sweep={"hosts": [1, 2]})
    trial = factories.running()
    if change == "cancelled":
        Trial.objects.get(pk=trial.pk).cancel()
    else:
        experiment.revise(parse({**experiment.specification, "sweep": {"hosts": [2]}}))
    assert trial.mark_lost("Gone.") is None


def test_it_is_lost_though_an_edit_superseded_it_while_it_ran() -> None:
    experiment = factories.experiment(retries=5)
    trial = factories.running()
    Cluster.objects.create(slug="rack", name="Rack", kind="ssh", settings={"hosts": ["a", "b", "c", "d"]})
    experiment.revise(parse({**experiment.specification, "cluster": "rack"}))
    assert trial.mark_lost("Gone.") is None
    assert (trial.state, trial.superseded) == (State.LOST, True)
    assert not Lease.objects.exists()
    assert experiment.trials.filter(configuration=trial.configuration, repetition=1, state=State.QUEUED).count() == 1


def test_it_gets_a_new_attempt_after_manual_repetitions() -> None:
    factories.experiment(retries=1, sweep={"hosts": [1]}, repetitions=1)
    for _ in range(3):
        trial = factories.running()
        trial.fail("It exited with status 1.")
        trial.queue_attempt()
    fourth = factories.running()
    assert fourth.attempt == 4
    assert fourth.mark_lost("Gone.") is not None
    assert factories.running().mark_lost("Gone again.") is None


def test_it_is_repeated_once_not_twice() -> None:
    factories.experiment()
    trial = factories.running()
    with pytest.raises(StaleTrial):
        trial.queue_attempt()  # not over yet
    trial.fail("It exited with status 1.")
    assert trial.queue_attempt().attempt == 2
    with pytest.raises(StaleTrial):
        trial.queue_attempt()


def test_requeue_restores_the_waiting_state() -> None:
    factories.experiment()
    trial = factories.running()
    before = Trial.objects.filter(state=State.QUEUED).count()
    assert trial.requeue("a reason of a host\0")
    assert trial.message == "a reason of a host\ufffd"
    assert (trial.state, trial.attempt) == (State.QUEUED, 1)
    assert (trial.worker, trial.preparing_at, trial.command) == ("", None, [])
    assert not trial.leases.exists()
    assert Trial.objects.filter(state=State.QUEUED).count() == before + 1
    assert factories.claimed("host:2:2").pk == trial.pk, "it keeps its turn"


def test_requeue_refuses_other_workers_and_cancelled_trials() -> None:
    factories.experiment()
    trial = factories.running()
    mine = Trial.objects.get(pk=trial.pk)
    Trial.objects.filter(pk=trial.pk).update(worker="host:2:2")
    assert not mine.requeue()
    Trial.objects.filter(pk=trial.pk).update(worker=mine.worker)
    trial.cancel()
    assert not mine.requeue()
    trial.refresh_from_db()
    assert trial.state == State.RUNNING
    assert trial.leases.exists()
