"""REST: submission of valid and invalid specifications."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client

from experiments.models import Experiment, Project, Trial
from tests.dashboard.api.clients import EXPERIMENTS, client_of
from tests.experiments import factories
from tests.experiments.specifications import written

pytestmark = pytest.mark.django_db


@pytest.fixture
def client() -> Client:
    return client_of(factories.person("ada", "submitter"))


def post(client: Client, body: Any, kind: str = "application/json", query: str = "") -> Any:
    return client.post(EXPERIMENTS + query, body if isinstance(body, str | bytes) else json.dumps(body), kind)


def test_it_queues_every_trial_and_answers_with_the_experiment(client: Client) -> None:
    answer = post(client, written(tags=["rest"]))
    assert answer.status_code == 201
    data = answer.json()
    experiment = Experiment.objects.get()
    assert answer.headers["Location"] == data["url"] == f"http://testserver{EXPERIMENTS}{experiment.slug}/"
    assert (data["slug"], data["owner"], data["project"], data["cluster"]) == ("water", "ada", "default", "testbed")
    assert (data["status"], data["trials"]["queued"], data["tags"]) == ("waiting", 4, ["rest"])
    assert data["specification"] == experiment.specification
    assert experiment.trials.count() == 4
    assert client.get(data["url"]).json() == data


def test_it_submits_to_a_named_project(client: Client) -> None:
    project = Project.objects.create(slug="optics", name="Optics")
    user = factories.person("bob", "submitter", project)
    assert post(client_of(user), written(), query="?project=optics").json()["project"] == "optics"


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"workload": "fire"}, "workload"),
        ({"parameters": {"atoms": 3}}, "parameters.atoms"),
        ({"parameters": {"steps": -1}}, "parameters.steps"),
        ({"sweep": {"hosts": [0]}}, "sweep.hosts"),
        ({"link": {"delay": "1 parsec"}}, "link.delay"),
        ({"sweep": {"hosts": "1..1000"}, "repetitions": 1000}, "sweep"),
        ({"colour": "red"}, "colour"),
        ({"cluster": "moon"}, "cluster"),
        ({"name": "half \ud800"}, "name"),
        ({"name": "nul \0"}, "name"),
    ],
)
def test_it_answers_400_with_the_path_and_stores_nothing(client: Client, changes: dict[str, Any], path: str) -> None:
    answer = post(client, written(**changes))
    assert answer.status_code == 400
    (error,) = answer.json()["errors"]
    assert error["path"] == path
    assert error["message"]
    assert not Experiment.objects.exists()
    assert not Trial.objects.exists()


def test_all_errors_are_reported_with_lines_of_yaml(client: Client) -> None:
    text = "name: Water\nworkload: water\nparameters:\n  steps: -1\n  atoms: 3\n"
    answer = post(client, text, "application/yaml")
    assert answer.status_code == 400
    assert [(e["path"], e["line"]) for e in answer.json()["errors"]] == [
        ("parameters.steps", 4),
        ("parameters.atoms", 5),
    ]


@pytest.mark.parametrize(
    ("body", "kind", "sentence"),
    [
        ("", "application/json", "is missing"),
        ("{", "application/json", "not valid JSON"),
        ('{"name": NaN}', "application/json", "NaN is not a number"),
        ('{"name": "a", "name": "b"}', "application/json", "'name' is given twice"),
        ("[" * 100_000, "application/json", "nested too deeply"),
        ("1" * 5000, "application/json", "is too large a number"),
        (b"\xff\xfe", "application/json", "not UTF-8"),
        (" " * 200_001, "application/json", "larger than"),
        ("[]", "application/json", "mapping of fields"),
        ("null", "application/json", "mapping of fields"),
        ("a: &x 1\nb: *x", "application/yaml", "aliases"),
        ("", "application/yaml", "is missing"),
    ],
)
def test_it_answers_400_to_a_body_that_cannot_be_read(client: Client, body: str, kind: str, sentence: str) -> None:
    answer = post(client, body, kind)
    assert answer.status_code == 400
    assert sentence in answer.json()["errors"][0]["message"]


def test_it_takes_no_forms(client: Client) -> None:
    answer = client.post(EXPERIMENTS, {"name": "Water"})
    assert answer.status_code == 415
    assert answer.json()["errors"][0]["path"] == ""
