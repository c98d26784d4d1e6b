"""Errors that belong to an outage of PostgreSQL or Redis."""

from __future__ import annotations

import logging

import psycopg
import pytest
import redis
from django.db import InterfaceError, OperationalError, connection
from kombu.exceptions import OperationalError as BrokerError
from psycopg import errors
from structlog.testing import capture_logs

from config.log import Outages
from experiments.common import outage

CASES = [
    (psycopg.OperationalError("could not translate host name"), "database"),
    (errors.AdminShutdown("terminating connection"), "database"),
    (errors.TooManyConnections("too many clients"), "database"),
    (errors.DiskFull("could not extend file"), "database"),
    (psycopg.InterfaceError("the connection is closed"), "database"),
    (errors.QueryCanceled("statement timeout"), None),
    (errors.DeadlockDetected("deadlock"), None),
    (psycopg.InterfaceError("cursor mode"), None),
    (redis.ConnectionError("refused"), "redis"),
    (redis.AuthenticationError("invalid password"), "redis"),
    (redis.TimeoutError("too long"), "redis"),
    (redis.ResponseError("MISCONF Redis is configured to save"), "redis"),
    (redis.ResponseError("WRONGTYPE"), None),
    (BrokerError("refused"), "redis"),
    (ValueError("wrong"), None),
]


@pytest.mark.parametrize(("error", "dependency"), CASES, ids=lambda case: type(case).__name__ if case else "None")
@pytest.mark.parametrize("wrapper", [None, OperationalError, InterfaceError, RuntimeError])
def test_outage_of(error: Exception, dependency: str | None, wrapper: type[Exception] | None) -> None:
    if wrapper is not None:
        inner, error = error, wrapper("as Django, Celery and others raise it")
        error.__cause__ = inner
    result = outage.outage_of(error)
    assert (result.dependency if result else None) == dependency


def test_the_log_drops_the_errors_of_an_outage_and_keeps_all_others() -> None:
    def record(error: Exception, *, as_argument: bool) -> logging.LogRecord:
        information = None if as_argument else (type(error), error, None)
        return logging.LogRecord("celery", logging.ERROR, "", 1, "%s", (error,) if as_argument else (), information)

    away, wrong = redis.ConnectionError("refused"), ValueError("wrong")
    outage.REDIS.end()
    with capture_logs() as lines:
        results = [Outages().filter(record(error, as_argument=how)) for error in (away, wrong) for how in (True, False)]
        outage.REDIS.end()
        outage.REDIS.end()
    assert results == [False, False, True, True]
    assert [line["event"] for line in lines] == ["redis_lost", "redis_restored"]
    assert lines[1]["errors"] == 2


@pytest.mark.django_db
def test_postgresql_detects_unreachable_machines_within_25_seconds() -> None:
    with connection.cursor() as cursor:
        for name, value in (("keepalives_idle", 10), ("keepalives_interval", 5), ("keepalives_count", 3)):
            assert cursor.execute(f"SHOW tcp_{name}").fetchone() == (str(value),)
        assert cursor.execute("SHOW tcp_user_timeout").fetchone() == ("25000",)
