"""The health check."""

import pytest
from django.test import Client

from tests.conftest import Services

pytestmark = pytest.mark.django_db


def test_it_answers_200_without_signing_in_when_both_services_answer(client: Client, services: Services) -> None:
    response = client.get("/healthz")
    assert (response.status_code, response.json()) == (200, {"database": True, "redis": True})


def test_it_answers_503_and_names_the_one_that_does_not(client: Client, services: Services) -> None:
    services.redis.stop()
    try:
        response = client.get("/healthz")
    finally:
        services.redis.start()
    assert (response.status_code, response.json()) == (503, {"database": True, "redis": False})
