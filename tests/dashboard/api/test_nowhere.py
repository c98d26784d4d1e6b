"""Whatever is asked below /api/v1/, the answer is JSON."""

from __future__ import annotations

import pytest

from tests.dashboard.api.clients import client_of
from tests.experiments import factories


@pytest.mark.django_db
@pytest.mark.parametrize(
    "place", ["planets/", "experiments/a%0Ab/repetitions/", "trials/%C2%80%0A=/artifacts/x/", "%0A"]
)
def test_it_refuses_an_address_that_does_not_exist_in_json(place: str) -> None:
    answer = client_of(factories.person("ada", "viewer")).get(f"/api/v1/{place}")
    assert (answer.status_code, answer["Content-Type"]) == (404, "application/problem+json")
    assert answer.json()["errors"][0]["message"].startswith("There is nothing at /api/v1/")
