"""REST: validation of specifications without storing them."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from experiments.models import Experiment, Project
from tests.dashboard.api.clients import EXPERIMENTS, client_of
from tests.experiments import factories
from tests.experiments.specifications import written

pytestmark = pytest.mark.django_db
ADDRESS = "/api/v1/validate/"


@pytest.fixture
def client() -> Client:
    return client_of(factories.person("ada", "submitter"))


def test_validation_reports_the_effects_of_a_specification(client: Client) -> None:
    answer = client.post(ADDRESS, written(warmups=1), content_type="application/json")
    assert answer.status_code == 200, answer.json()
    data = answer.json()
    assert (data["valid"], data["configurations"], data["trials"]) == (True, 2, 6)
    assert data["kinds"] == {"measured": 4, "warmup": 2}
    assert [(point["hosts"], point["parameters"]["hosts"]) for point in data["points"]] == [(1, 1), (2, 2)]
    assert data["seconds"] > sum(point["seconds"] for point in data["points"])
    assert data["command"][0] == "mpirun"
    assert not Experiment.objects.exists()


def test_it_takes_yaml_and_names_its_line(client: Client) -> None:
    answer = client.post(
        ADDRESS, "name: Water\nworkload: water\nsweep: {hosts: [0]}\n", content_type="application/yaml"
    )
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["line"] == 3


@pytest.mark.parametrize(
    "changes",
    [{"workload": "watre"}, {"sweep": {"hosts": [100_000]}}, {"link": {"delay": "1 parsec"}}, {"repetitions": 5000}],
)
def test_validation_refuses_as_submission_does(client: Client, changes: dict[str, Any]) -> None:
    refused, validated = (
        client.post(address, written(**changes), content_type="application/json") for address in (EXPERIMENTS, ADDRESS)
    )
    assert (validated.status_code, validated.json()) == (400, refused.json())


def test_validation_checks_the_quota_of_the_project(client: Client) -> None:
    Project.objects.filter(slug="default").update(most_queued_trials=3)
    refused, validated = (
        client.post(address, written(), content_type="application/json") for address in (EXPERIMENTS, ADDRESS)
    )
    assert (validated.status_code, validated.json()) == (400, refused.json())
