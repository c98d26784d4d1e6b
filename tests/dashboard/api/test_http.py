"""REST over a real socket: the requests of docs/reference/rest.md."""

# ruff: noqa: S310 (only the live server's own addresses are opened)

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest

from experiments.library import LIBRARY, load_defaults
from experiments.models import ApiToken
from tests.dashboard.api.clients import client_of
from tests.experiments import factories


@pytest.mark.django_db(transaction=True)
def test_it_takes_a_built_in_experiment_and_follows_its_address(live_server: Any) -> None:
    load_defaults()
    _, key = ApiToken.issue(factories.person("admin", is_superuser=True), "test")
    sign_in = {"Authorization": f"Bearer {key}"}
    submission = urllib.request.Request(
        f"{live_server.url}/api/v1/experiments/",
        data=(LIBRARY / "water-quick.yaml").read_bytes(),
        headers={**sign_in, "Content-Type": "application/yaml"},
    )
    with urllib.request.urlopen(submission, timeout=90) as answer:
        assert answer.status == 201
        address, data = answer.headers["Location"], json.load(answer)
    assert data["trials"]["queued"] == 9
    with urllib.request.urlopen(urllib.request.Request(address, headers=sign_in), timeout=90) as answer:
        assert json.load(answer) == data


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("trials", "state"),
        ("trials", "hosts"),
        ("experiments", "offset"),
        ("history", "flagged"),
    ],
)
def test_it_refuses_numbers_and_choices_without_a_value(db: None, address: str, name: str) -> None:
    answer = client_of(factories.person("ada", "viewer")).get(f"/api/v1/{address}/?{name}=")
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (400, name)
