"""REST: what nobody expected is told in JSON too."""

from __future__ import annotations

import pytest
from django.test import Client

from dashboard.api.experiments.rows import ExperimentViewSet
from tests.dashboard.api.clients import EXPERIMENTS, client_of
from tests.experiments import factories


def fail(*_: object) -> None:
    raise ZeroDivisionError("a secret of the program")


def test_it_tells_a_surprise_in_json_without_its_reason(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ExperimentViewSet, "get_queryset", fail)
    client: Client = client_of(factories.person("ada", "viewer"))
    client.raise_request_exception = False
    answer = client.get(EXPERIMENTS)
    assert (answer.status_code, answer.headers["Content-Type"]) == (500, "application/problem+json")
    message = "Rankwire could not answer this; the reason is in its log."
    assert answer.json()["errors"] == [{"path": "", "message": message}]
    assert "secret" not in answer.content.decode()
