"""Errors below /api/v1/ are problem documents."""

from __future__ import annotations

import pytest
from django.test import Client

from dashboard.api.experiments.rows import ExperimentViewSet
from tests.dashboard.api.clients import EXPERIMENTS, client_of
from tests.experiments import factories


@pytest.mark.django_db
@pytest.mark.parametrize(
    "path", ["planets/", "experiments/a%0Ab/repetitions/", "trials/%C2%80%0A=/artifacts/x/", "%0A"]
)
def test_it_refuses_an_address_that_does_not_exist_in_json(path: str) -> None:
    answer = client_of(factories.person("ada", "viewer")).get(f"/api/v1/{path}")
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/problem+json")
    assert answer.json()["errors"][0]["message"].startswith("There is nothing at /api/v1/")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "complete"), [("trials/7/artifacts/stdout.txt", True), ("status", True), ("planets", False)]
)
def test_an_address_without_its_last_slash_names_the_complete_one(path: str, complete: bool) -> None:
    answer = client_of(factories.person("ada", "viewer")).get(f"/api/v1/{path}")
    assert answer.status_code == 404
    assert (f"/api/v1/{path}/" in answer.json()["errors"][0]["message"]) is complete


@pytest.mark.parametrize("path", ["/api/v1/status/", "/experiments/"])
def test_an_unknown_host_name_is_named_with_the_setting(client: Client, path: str) -> None:
    answer = client.get(path, headers={"host": "lab.example.org"})
    assert answer.status_code == 400
    text = answer.content.decode()
    assert "lab.example.org" in text
    assert "RANKWIRE_ALLOWED_HOSTS" in text


def fail(*_: object) -> None:
    raise ZeroDivisionError("a secret of the program")


def test_unexpected_errors_are_problem_documents_without_the_cause(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ExperimentViewSet, "get_queryset", fail)
    client: Client = client_of(factories.person("ada", "viewer"))
    client.raise_request_exception = False
    answer = client.get(EXPERIMENTS)
    assert (answer.status_code, answer.headers["Content-Type"]) == (500, "application/problem+json")
    message = "Rankwire could not answer this; the reason is in its log."
    assert answer.json()["errors"] == [{"path": "", "message": message}]
    assert "secret" not in answer.content.decode()
