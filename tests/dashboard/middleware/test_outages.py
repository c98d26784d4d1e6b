"""Without PostgreSQL or Redis, pages and REST answer 503 with Retry-After."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client
from structlog.testing import capture_logs

from config.services.service import Service
from experiments.models import ApiToken
from tests.config.processes import wait_for
from tests.conftest import Services

pytestmark = pytest.mark.django_db(transaction=True)
REQUESTS = 3


@pytest.fixture
def visitor() -> Client:
    """As a browser that shows what a handler answers instead of raising its exception."""
    client = Client(raise_request_exception=False)
    client.force_login(User.objects.create_superuser("someone"))
    return client


@pytest.fixture
def token() -> str:
    return ApiToken.issue(User.objects.create_superuser("program"), "client")[1]


def down(service: Service) -> Iterator[None]:
    connections["default"].close()
    service.stop()
    yield
    service.start()


@pytest.fixture
def without_database(visitor: Client, token: str, services: Services) -> Iterator[None]:
    yield from down(services.postgres)


@pytest.fixture
def without_redis(visitor: Client, services: Services) -> Iterator[None]:
    yield from down(services.redis)


def test_pages_and_rest_answer_503_while_the_database_is_away(
    visitor: Client, token: str, without_database: None
) -> None:
    page = visitor.get("/experiments/")
    rest = Client(raise_request_exception=False).get("/api/v1/status/", headers={"Authorization": f"Bearer {token}"})
    assert (page.status_code, rest.status_code) == (503, 503)
    assert int(page.headers["Retry-After"]) > 0
    assert int(rest.headers["Retry-After"]) > 0
    assert rest.json()["detail"] == "The database does not answer."
    assert "The database does not answer." in page.content.decode()


def test_a_page_that_needs_redis_answers_503_while_it_is_away(visitor: Client, without_redis: None) -> None:
    page = Client(raise_request_exception=False).post("/sign-in/", {"username": "someone", "password": "wrong"})
    assert page.status_code == 503
    assert "Redis does not answer." in page.content.decode()


def test_an_outage_is_one_line_when_it_begins_and_one_when_it_ends(
    visitor: Client, services: Services, caplog: pytest.LogCaptureFixture
) -> None:
    with capture_logs() as lines:
        connections["default"].close()
        services.postgres.stop()
        try:
            assert [visitor.get("/experiments/").status_code for _ in range(REQUESTS)] == [503] * REQUESTS
        finally:
            services.postgres.start()
        wait_for(lambda: visitor.get("/experiments/").status_code == 200)
    events = [line for line in lines if line["event"].startswith("database_")]
    assert [line["event"] for line in events] == ["database_lost", "database_restored"]
    assert events[1]["errors"] == REQUESTS
    assert events[1]["outage_s"] >= 0
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
