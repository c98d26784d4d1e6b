"""Pages and REST of waiting trials show the missing process."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models.functions import Now
from django.test import Client
from django.urls import reverse

from experiments.models import BackgroundTask, Cluster, ClusterTest, Experiment, Heartbeat

WARNING = re.compile(r"docker compose up -d (\w+)")


def missing(page: Client, address: str) -> list[str]:
    return WARNING.findall(page.get(address).content.decode())


@pytest.fixture
def alive() -> Callable[..., None]:
    def store(*roles: str, minutes_ago: int = 0) -> None:
        for role in roles:
            Heartbeat.record(role, "here")
            Heartbeat.objects.filter(role=role).update(seen_at=Now() - timedelta(minutes=minutes_ago))

    return store


@pytest.fixture
def addresses(submit: Callable[..., Experiment], person: User) -> dict[str, tuple[str, ...]]:
    """Pages that wait, with the processes that they wait for."""
    experiment = submit()
    ClusterTest.ask(Cluster.objects.get(slug="local"))
    BackgroundTask.ask(person, BackgroundTask.Kind.EXPORT, {}, title="a table")
    return {
        experiment.get_absolute_url(): ("worker", "beat"),
        reverse("home"): ("worker", "beat"),
        reverse("cluster", args=["local"]): ("worker",),
        reverse("tasks"): ("background", "beat"),
    }


def test_pages_that_wait_show_which_process_is_missing(
    page: Any, addresses: dict[str, tuple[str, ...]], alive: Callable[..., None]
) -> None:
    assert {address: tuple(missing(page, address)) for address in addresses} == addresses
    alive("worker", "beat", "background")
    assert [missing(page, address) for address in addresses] == [[]] * len(addresses)


def test_rest_shows_the_processes(page: Any, alive: Callable[..., None]) -> None:
    alive("beat")
    alive("worker", minutes_ago=3)
    rows = {row["role"]: row for row in json.loads(page.get("/api/v1/status/").content)["processes"]}
    assert {role: row["alive"] for role, row in rows.items()} == {"beat": True, "worker": False, "background": False}
    assert rows["worker"]["age_s"] >= 180
    assert rows["background"]["seen_at"] is None
