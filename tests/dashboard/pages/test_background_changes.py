"""Background changes of many trials."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from dashboard.background import changes
from dashboard.background.tasks import do, work
from experiments.models import BackgroundTask, Experiment, Membership, State
from tests.dashboard.api.clients import EXPERIMENTS, client_of

pytestmark = pytest.mark.usefixtures("empty_redis")


@pytest.fixture
def failed(submit, monkeypatch: pytest.MonkeyPatch) -> Experiment:
    """Six failed trials, with five as the limit of direct changes."""
    monkeypatch.setattr(changes, "MOST_AT_ONCE", 5)
    experiment: Experiment = submit(warmups=0)
    experiment.trials.update(state=State.FAILED)
    assert experiment.trials.count() == 6
    return experiment


def waiting(experiment: Experiment) -> int:
    return int(experiment.trials.filter(state=State.QUEUED).count())


def test_many_failed_trials_run_again_in_the_background(page: Client, failed: Experiment) -> None:
    for _ in range(2):
        answer = page.post(f"/experiments/{failed.slug}/rerun/")
        task = BackgroundTask.objects.get()
        assert answer.headers["Location"] == f"/tasks/{task.pk}/"
    assert waiting(failed) == 0
    work()
    assert waiting(failed) == 6
    assert "6 trials queued" in page.get(f"/tasks/{task.pk}/").content.decode()


def test_rest_answers_202_and_a_small_change_after_a_large_one_takes_its_turn(person: User, failed: Experiment) -> None:
    client = client_of(person)
    large = client.post(f"{EXPERIMENTS}{failed.slug}/repetitions/", {"count": 2}, "application/json")
    small = client.post(f"{EXPERIMENTS}{failed.slug}/repetitions/", {"count": 1}, "application/json")
    assert [answer.status_code for answer in (large, small)] == [202, 202]
    first = BackgroundTask.claim_next()
    assert first is not None
    assert BackgroundTask.claim_next() is None, "those of one experiment run one after another"
    do(first)
    work()
    assert [client.get(answer.json()["url"]).json()["message"] for answer in (large, small)] == [
        "6 trials queued.",
        "9 trials queued.",  # waiting ones make room for the new order
    ]
    failed.refresh_from_db()
    assert failed.spec.repetitions == 5


def test_a_change_whose_worker_was_taken_for_dead_is_made_once(person: User, failed: Experiment) -> None:
    changes.repeat(person, failed, 2)
    slow = BackgroundTask.claim_next()
    assert slow is not None
    BackgroundTask.objects.update(state=BackgroundTask.State.WAITING)
    work()
    do(slow)
    assert waiting(failed) == 6


def test_who_may_not_change_the_experiment_any_more_changes_nothing(person: User, failed: Experiment) -> None:
    task = changes.rerun_failed(person, failed)
    assert isinstance(task, BackgroundTask)
    Membership.objects.filter(user=person).delete()
    work()
    task.refresh_from_db()
    assert (task.state, waiting(failed)) == ("failed", 0)
