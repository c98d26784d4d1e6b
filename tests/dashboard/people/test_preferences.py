"""Theme and time zone, kept with the account and shown on every page and in mails."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from experiments.models import Event, Preferences, Project, Trial
from tests.experiments import factories
from workers.notifications import messages

NOON = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)


def test_the_account_keeps_both_and_pages_follow(page: Client, person: User, submit, run) -> None:
    trial = submit(repetitions=1, sweep={"hosts": [1]}).trials.get()
    run()
    Trial.objects.filter(pk=trial.pk).update(ended_at=NOON, running_at=NOON)
    assert 'data-theme="system"' in page.get("/account/").content.decode()
    assert "1 Jul 2026, 12:00:00\N{NO-BREAK SPACE}UTC" in page.get(trial.get_absolute_url()).content.decode()
    answer = page.post(
        "/account/display/", {"display-theme": "dark", "display-time_zone": "Asia/Kathmandu"}, follow=True
    )
    assert 'data-theme="dark"' in answer.content.decode()
    html = page.get(trial.get_absolute_url()).content.decode()
    assert "1 Jul 2026, 17:45:00\N{NO-BREAK SPACE}UTC+05:45" in html
    assert 'data-time-zone="Asia/Kathmandu"' in html
    assert timezone.get_current_timezone_name() == "UTC"
    assert page.get(f"/api/v1/trials/{trial.pk}/").json()["ended_at"] == "2026-07-01T12:00:00Z"


@pytest.mark.parametrize("wrong", [{"display-theme": "pink"}, {"display-time_zone": "Mars/Olympus"}])
def test_it_refuses_what_there_is_not(page: Client, wrong: dict[str, str]) -> None:
    answer = page.post("/account/display/", {"display-theme": "dark", "display-time_zone": "UTC", **wrong})
    assert answer.status_code == 422
    preferences = Preferences.objects.get()
    assert (preferences.theme, preferences.time_zone) == ("system", "")


def test_the_button_of_the_header_keeps_the_theme_alone(page: Client, person: User) -> None:
    Preferences.objects.filter(user=person).update(time_zone="Europe/Vienna")
    assert page.post("/account/theme/", {"theme": "light"}).status_code == 204
    preferences = Preferences.objects.get(user=person)
    assert (preferences.theme, preferences.time_zone) == ("light", "Europe/Vienna")
    assert page.post("/account/theme/", {"theme": "sepia"}).status_code == 400


def test_pages_before_signing_in_ask_no_account(client: Client, library: Project) -> None:
    html = client.get("/sign-in/").content.decode()
    assert "data-theme=" not in html
    assert "data-keeps" not in html


def test_a_zone_that_the_machine_no_longer_knows_is_none(person: User) -> None:
    assert Preferences(user=person, time_zone="Nowhere/City").zone is None


def test_mails_tell_the_time_of_their_reader(library) -> None:
    event = Event(kind=Event.Kind.ENDED, experiment=factories.experiment(), at=NOON, data={})
    assert "When: 2026-07-01 14:00 CEST" in messages.mail(event, "ada@example.org", ZoneInfo("Europe/Vienna")).body


def test_visits_are_recorded_but_not_with_each_page(page: Client, person: User) -> None:
    long_ago = timezone.now() - timedelta(days=3)
    Preferences.objects.filter(user=person).update(seen_at=long_ago)
    page.get("/account/")
    assert Preferences.objects.get(user=person).seen_at > timezone.now() - timedelta(minutes=1)
    with CaptureQueriesContext(connection) as queries:
        page.get("/account/")
    assert not [query for query in queries if query["sql"].startswith(("UPDATE", "INSERT"))]
