"""Retention of events and messages: batches, no duplicates, old cursors."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.test import Client
from django.utils import timezone

from experiments.access import visible_events
from experiments.models import Delivery, Event, Experiment, Trial
from tests.dashboard.api.clients import client_of
from tests.experiments import factories
from workers.retention import remove_old_events

pytestmark = pytest.mark.django_db
EVENTS = "/api/v1/events/"


@pytest.fixture
def experiment() -> Experiment:
    Event.objects.all().delete()
    return factories.experiment()


def event(
    kind: str, key: str, experiment: Experiment, days: float, *, reported: bool = True, trial: Trial | None = None
) -> Event:
    at = timezone.now() - timedelta(days=days)
    return Event.objects.create(
        kind=kind, key=f"{kind}:{key}", experiment=experiment, trial=trial, at=at, told_at=at if reported else None
    )


def keys() -> set[str]:
    return set(Event.objects.values_list("key", flat=True))


def test_old_events_go_except_those_that_prevent_duplicates(experiment: Experiment) -> None:
    trial = experiment.trials.earliest("pk")
    event("imported", "old", experiment, 91)
    event("ended", "first", experiment, 95)
    event("ended", "without_notifications", experiment, 94, reported=False)
    event("ended", "last", experiment, 92)
    event("failed", "once", experiment, 92, trial=trial)
    event("stepped", "level", experiment, 92, trial=trial)
    event("imported", "young", experiment, 89)
    assert remove_old_events() == 2
    assert keys() == {"ended:without_notifications", "ended:last", "failed:once", "stepped:level", "imported:young"}
    assert remove_old_events() == 0


def test_old_events_are_invisible(experiment: Experiment) -> None:
    event("failed", "once", experiment, 92, trial=experiment.trials.earliest("pk"))
    event("imported", "young", experiment, 89)
    assert [item.key for item in visible_events(factories.person("root", is_superuser=True))] == ["imported:young"]


def test_the_setting_says_how_many_days_and_none_is_for_ever(experiment: Experiment, settings: LazySettings) -> None:
    event("imported", "old", experiment, 1000)
    event("imported", "week", experiment, 8)
    settings.EVENT_DAYS = 0
    assert remove_old_events() == 0
    assert visible_events(factories.person("root", is_superuser=True)).count() == 2
    settings.EVENT_DAYS = 7
    assert remove_old_events() == 2
    assert keys() == set()


def test_messages_go_alike_unless_they_wait(experiment: Experiment) -> None:
    last, person = event("ended", "last", experiment, 100), factories.person("ada")
    old, state = timezone.now() - timedelta(days=91), Delivery.State
    rows = [
        Delivery(user=person, event=last, state=state.SENT, ended_at=old),
        Delivery(user=person, state=state.FAILED, ended_at=old),
        Delivery(user=person, state=state.SENT, ended_at=timezone.now()),
        Delivery(user=person, state=state.WAITING, created_at=old),
    ]
    Delivery.objects.bulk_create(rows)
    assert remove_old_events() == 2
    assert set(Delivery.objects.values_list("state", flat=True)) == {state.SENT, state.WAITING}
    assert keys() == {"ended:last"}


def test_expired_cursor_is_refused_and_another_continues(experiment: Experiment) -> None:
    client: Client = client_of(factories.person("root", is_superuser=True))
    for number in range(3):
        event("imported", str(number), experiment, 10)
    newest = client.get(EVENTS, {"limit": 2}).json()
    before = client.get(newest["next"]).json()
    event("imported", "since", experiment, 0)
    since = client.get(before["previous"]).json()
    assert [len(item["results"]) for item in (newest, before, since)] == [2, 1, 2]
    Event.objects.exclude(key="imported:since").update(at=timezone.now() - timedelta(days=91))
    assert remove_old_events() == 3
    late = client.get(before["previous"])
    assert late.status_code == 410
    assert "older than 90 days" in late.json()["errors"][0]["message"]
    assert len(client.get(EVENTS).json()["results"]) == 1
    Event.objects.all().delete()
    assert client.get(before["previous"]).status_code == 410
    assert client.get(EVENTS).json()["results"] == []
