"""The health check, and the same for monitoring."""

from __future__ import annotations

from datetime import timedelta

import psutil
import pytest
from django.db import connections
from django.db.models.functions import Now
from django.test import Client

from config import health
from experiments.models import Heartbeat
from experiments.models.heartbeat import ALIVE_S
from tests.conftest import Services

pytestmark = pytest.mark.django_db(transaction=True)
ROLES = ("beat", "worker", "background")


def test_it_answers_200_without_signing_in_when_both_services_answer(client: Client, services: Services) -> None:
    response = client.get("/healthz")
    assert response.status_code == 200
    assert response.json() == {
        "database": True,
        "redis": True,
        "ready": True,
        "alive": False,
        "last_seen_s": dict.fromkeys(ROLES),
    }


def test_it_answers_503_and_names_the_one_that_does_not(client: Client, services: Services) -> None:
    services.redis.stop()
    try:
        response = client.get("/healthz")
    finally:
        services.redis.start()
    assert response.status_code == 503
    assert {name: response.json()[name] for name in ("database", "redis", "ready")} == {
        "database": True,
        "redis": False,
        "ready": False,
    }


def test_it_answers_503_while_the_database_hangs(client: Client, services: Services) -> None:
    connections["default"].close()
    assert services.postgres.process is not None
    server = psutil.Process(services.postgres.process.pid)
    server.suspend()
    try:
        response = client.get("/healthz")
    finally:
        server.resume()
    assert (response.status_code, response.json()["database"], response.json()["alive"]) == (503, False, None)
    assert health.PATIENCE_S < 2.0


def test_it_shows_which_process_has_no_heartbeat(client: Client, services: Services) -> None:
    for role in ROLES:
        Heartbeat.record(role, "here")
    assert client.get("/healthz").json()["alive"] is True
    Heartbeat.objects.filter(role="beat").update(seen_at=Now() - timedelta(seconds=ALIVE_S + 30))
    answer = client.get("/healthz")
    assert answer.status_code == 200, "pages can be served"
    assert answer.json()["alive"] is False
    assert answer.json()["last_seen_s"]["beat"] >= ALIVE_S + 30
    lines = client.get("/metrics").content.decode().splitlines()
    assert 'rankwire_up{dependency="database"} 1' in lines
    ages = dict(line.rsplit(" ", 1) for line in lines if line.startswith("rankwire_last_seen_seconds{"))
    assert float(ages['rankwire_last_seen_seconds{process="beat"}']) >= ALIVE_S + 30


def test_a_heartbeat_of_another_process_of_the_role_counts_and_old_ones_are_forgotten(services: Services) -> None:
    Heartbeat.record("worker", "old")
    Heartbeat.objects.update(seen_at=Now() - timedelta(days=3))
    Heartbeat.forget_old()
    assert Heartbeat.objects.count() == 1, "the last one of a role stays"
    Heartbeat.record("worker", "new")
    Heartbeat.record("worker", "new")
    Heartbeat.forget_old()
    assert [heartbeat.name for heartbeat in Heartbeat.objects.all()] == ["new"]
