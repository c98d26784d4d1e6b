"""Quotas and priorities on pages and in REST."""

from __future__ import annotations

import json

import pytest
from django.urls import reverse

from experiments.models import Experiment, Project
from experiments.models.states import Priority
from experiments.selectors.quotas import Quota
from tests.dashboard.api.clients import EXPERIMENTS, client_of
from tests.dashboard.reader import Reader
from tests.experiments import factories
from tests.words import words_of


@pytest.fixture
def experiment(db: None, empty_redis: object) -> Experiment:
    return factories.experiment(owner=factories.person("ada", "maintainer"))


def test_members_see_only_quotas_of_their_projects(experiment: Experiment, settings) -> None:
    settings.QUOTA_QUEUED_TRIALS = 4
    Project.objects.create(slug="hidden", name="Hidden")
    page = Reader()
    page.force_login(experiment.owner)
    text = words_of(page.get(reverse("quotas")))
    assert "4 of 4 trials used up" in text
    assert "has used up 4 of 4 trials (queued): more trials are refused until fewer are queued." in text
    assert "Hidden" not in text
    answer = client_of(experiment.owner).get("/api/v1/quotas/").json()
    assert [row["project"] for row in answer] == ["default"]
    assert answer[0]["quotas"][0] == {"name": "queued_trials", "unit": "trials", "used": 4.0, "most": 4}


def test_little_usage_is_near_to_no_quota(experiment: Experiment, settings) -> None:
    settings.QUOTA_QUEUED_TRIALS = 4 * 1000
    page = Reader()
    page.force_login(experiment.owner)
    assert page.get(reverse("quotas")).context["answer"] == "No quota is used up: all usage is below 1 %."
    settings.QUOTA_QUEUED_TRIALS = 5
    assert "is nearest to one with 4 of 5 trials" in page.get(reverse("quotas")).context["answer"]


@pytest.mark.parametrize(
    ("used", "words"),
    [(0.1357, "0.14 of 250 GiB"), (0.0, "0 of 250 GiB"), (4, "4 of 250 GiB"), (12.6, "13 of 250 GiB")],
)
def test_little_usage_is_not_shown_as_none(used: float, words: str) -> None:
    assert Quota("capture_gib", "Captures", "GiB", "capture", used, 250).words == words


def test_superusers_are_led_from_quotas_to_the_projects_that_hold_them(experiment: Experiment) -> None:
    page = Reader()
    page.force_login(factories.person("root", is_superuser=True))
    assert f'href="{reverse("project", args=["default"])}"' in page.get(reverse("quotas")).content.decode()
    assert 'name="settings-most_queued_trials"' in page.get(reverse("project", args=["default"])).content.decode()


def test_maintainers_set_the_priority_and_submitters_do_not(experiment: Experiment) -> None:
    page, address = Reader(), reverse("experiment-priority", args=[experiment.slug])
    page.force_login(experiment.owner)
    assert 'value="1"' in page.get(experiment.get_absolute_url()).content.decode()
    assert page.post(address, {"priority": "1"}).status_code == 302
    experiment.refresh_from_db()
    assert experiment.priority == Priority.HIGH
    assert page.post(address, {"priority": "7"}).status_code == 302
    client, rest = client_of(experiment.owner), f"{EXPERIMENTS}{experiment.slug}/priority/"
    answer = client.post(rest, json.dumps({"priority": "low"}), "application/json")
    assert (answer.status_code, answer.json()) == (200, {"priority": "low"})
    assert client.post(rest, json.dumps({"priority": "first"}), "application/json").status_code == 400
    experiment.owner.memberships.update(role="submitter")
    assert page.post(address, {"priority": "1"}).status_code == 403
    assert client.post(rest, json.dumps({"priority": "high"}), "application/json").status_code == 403
    experiment.refresh_from_db()
    assert experiment.priority == Priority.LOW
    assert "Priority low" in words_of(page.get(experiment.get_absolute_url()))
