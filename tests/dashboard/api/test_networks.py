"""REST: named networks, edited by maintainers."""

from __future__ import annotations

from typing import Any

import pytest

from experiments.library import load_defaults
from experiments.models import Network
from tests.dashboard.api.clients import client_of
from tests.experiments import factories

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]
NETWORKS = "/api/v1/networks/"
OURS = {"name": "Ours", "delay_s": 20e-6, "rate_bps": 40e9}


@pytest.fixture(autouse=True)
def usual() -> None:
    load_defaults()


def put(client: Any, rows: Any) -> Any:
    return client.put(NETWORKS, rows, content_type="application/json")


def test_a_maintainer_replaces_them() -> None:
    client = client_of(factories.person("ada", "maintainer"))
    assert {"name": "Wide area", "delay_s": 0.01, "rate_bps": 1e9} in client.get(NETWORKS).json()
    assert put(client, [OURS]).json() == [OURS]
    assert client.get(NETWORKS).json() == [OURS]


@pytest.mark.parametrize(
    ("rows", "path"),
    [
        ([OURS, {**OURS, "name": "OURS"}], "0.name"),
        ([{**OURS, "delay_s": -1.0}], "0.delay_s"),
        ([OURS, {"name": "Half"}], "1.delay_s"),
    ],
)
def test_what_is_no_list_of_networks_is_refused_at_its_place(rows: Any, path: str) -> None:
    answer = put(client_of(factories.person("ada", "maintainer")), rows)
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (400, path)
    assert Network.objects.count() == 6
