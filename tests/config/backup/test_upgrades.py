"""Databases of earlier versions are migrated: measurements, answers, accounts.

``tests/data/databases`` holds dumps of real ones, each named by its last migration: four trials of water on one and two virtual hosts, an
API token, and an admin whose password is "of that time". Since 0028 also what a second person has made: a project, a saved view, a
webhook, a cluster, an expected change, a deleted experiment. How they were made: docs/decisions/0018-backups.md.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from config.backup.dump import Programs
from config.environment import database
from tests.config.backup.conftest import Elsewhere

DATABASES = Path(__file__).parents[2] / "data" / "databases"
NAMES = sorted(dump.stem for dump in DATABASES.glob("*.dump"))
LOOK = """
import json
from django.conf import settings
from django.core.management import call_command
from django.test import Client
from experiments.models import ApiToken, Trial
call_command("migrate", verbosity=0, interactive=False)
settings.ALLOWED_HOSTS = ["testserver"]
browser = Client()
browser.post("/sign-in/", {"username": "admin", "password": "of that time"})
trials = Trial.objects.filter(experiment__slug="spec")
pages = ["/", "/experiments/spec/", *(trial.get_absolute_url() for trial in trials), "/explore/"]
print(json.dumps({
    "pages": [browser.get(page, follow=True).status_code for page in pages],
    "result": browser.get("/api/v1/experiments/spec/result/").json(),
    "states": sorted(trials.values_list("state", flat=True)),
    "counted": trials.counted().count(),
    "tokens": list(ApiToken.objects.values_list("name", "user__username", "scope", "project")),
}))
"""


def test_the_stored_ones_are_found() -> None:
    assert {"0001", "0009", "0028"} <= set(NAMES)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", NAMES)
def test_a_database_of_then_is_read_today(name: str, elsewhere: Elsewhere) -> None:
    Programs(database(elsewhere.url), 0).load(DATABASES / f"{name}.dump", elsewhere.database)
    values = "SELECT trial_id, scope, metric, value FROM experiments_measurement ORDER BY 1, 2, 3"
    measured = elsewhere.execute(values, elsewhere.database)
    assert len([row for row in measured if row[2] == "elapsed_s"]) >= 4

    there = elsewhere.ask(LOOK)

    assert set(measured) <= set(elsewhere.execute(values, elsewhere.database))
    assert set(there["pages"]) == {200}
    assert there["states"] == ["finished"] * 4
    assert there["counted"] == 4
    assert there["result"]["experiment"]["name"] == "Kept through upgrades"
    assert there["result"]["answer"]["sentence"]
    assert there["tokens"] == [["stored", "admin", "maintain", None]]


OF_PEOPLE = """
import json
from django.contrib.auth import get_user_model
from django.core.management import call_command
from experiments import deletion
from experiments.models import Cluster, Deleted, ExpectedChange, Membership, Preferences, SavedView, TrialValues, Webhook
call_command("migrate", verbosity=0, interactive=False)
again = deletion.restore_deleted(Deleted.objects.get())
print(json.dumps({
    "signs_in": get_user_model().objects.get(username="ada").check_password("of that time"),
    "roles": list(Membership.objects.filter(user__username="ada").values_list("project__slug", "role")),
    "quota": Membership.objects.get(user__username="ada").project.most_queued_trials,
    "preferences": list(Preferences.objects.filter(user__username="ada").values_list("theme", "time_zone")),
    "views": list(SavedView.objects.values_list("name", "query", "owner__username", "shared")),
    "webhooks": list(Webhook.objects.values_list("project__slug", "url", "made_by__username")),
    "cluster": Cluster.objects.get(slug="lab").settings,
    "expected": list(ExpectedChange.objects.values_list("metric", "reason", "author__username")),
    "brought_back": [again.slug, again.project.slug, sorted(again.trials.values_list("state", flat=True))],
    "wrong_values": list(TrialValues.wrong()),
}))
"""


@pytest.mark.timeout(120)
def test_what_people_had_made_comes_along(elsewhere: Elsewhere) -> None:
    Programs(database(elsewhere.url), 0).load(DATABASES / "0028.dump", elsewhere.database)
    assert elsewhere.ask(OF_PEOPLE) == {
        "signs_in": True,
        "roles": [["optics", "maintainer"]],
        "quota": 50,
        "preferences": [["dark", "Europe/Vienna"]],
        "views": [["slow ones", "state=finished", "ada", True]],
        "webhooks": [["optics", "https://hooks.example.org/rankwire", "ada"]],
        "cluster": {"hosts": ["n1", "n2"], "user": "bench"},
        "expected": [["elapsed_s", "new memory", "ada"]],
        "brought_back": ["optics--taken-back", "optics", ["cancelled"] * 3],
        "wrong_values": [],
    }
