"""Requests beyond the processor time answer 503 and change nothing."""

from __future__ import annotations

import json
import time

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client

from experiments.common import budget
from experiments.models import Experiment
from experiments.specification import parse_yaml
from tests.dashboard.api.clients import EXPERIMENTS, client_of
from tests.dashboard.laboratory import specification

LONG = "name: x\nworkload: water\nnothing: [" + "1, " * 9_000 + "]\n"


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch, settings: LazySettings) -> None:
    """A processor on which a second has passed whenever one looks."""
    settings.REQUEST_CPU_SECONDS = 10
    seconds = iter(range(10**9))
    monkeypatch.setattr(time, "thread_time", lambda: float(next(seconds)))


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("kind", ["application/yaml", "application/json"])
def test_rest_answers_503_and_stores_nothing(person: User, kind: str) -> None:
    body = (
        LONG
        if kind == "application/yaml"
        else json.dumps(specification(parameters={}, sweep={"steps": list(range(10, 40))}))
    )
    answer = client_of(person).post(EXPERIMENTS, body, kind)
    assert answer.status_code == 503
    assert not Experiment.objects.filter(published=False).exists()


@pytest.mark.usefixtures("hasty")
def test_page_beyond_the_processor_time_answers_503(page: Client) -> None:
    answer = page.post("/experiments/new/preview/", {"source": "yaml", "yaml": LONG})
    assert answer.status_code == 503


@pytest.mark.usefixtures("hasty")
def test_processor_time_is_unlimited_at_zero(person: User, settings: LazySettings) -> None:
    settings.REQUEST_CPU_SECONDS = 0
    assert client_of(person).post(EXPERIMENTS, LONG, "application/yaml").status_code == 400


def test_time_of_one_request_is_not_taken_from_the_next() -> None:
    with budget.seconds(1e-9), pytest.raises(budget.Exhausted):
        parse_yaml(LONG)
    budget.check()
    with budget.seconds(60):
        budget.check()


@pytest.mark.django_db(transaction=True)
def test_requests_beyond_the_time_of_the_database_answer_503(person: User, page: Client) -> None:
    other = connection.copy()
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            with other.cursor() as blocking:
                blocking.execute("BEGIN; LOCK TABLE experiments_report")
            cursor.execute("SET LOCAL statement_timeout = 500")
            assert page.get("/reports/").status_code == 503
            transaction.set_rollback(True)
    finally:
        other.close()
