"""Outages of PostgreSQL and Redis: one log line at the start, one at the end."""

from __future__ import annotations

import mmap
import struct
import time
from typing import Any, Final

import psycopg
import redis
import structlog
from kombu.exceptions import OperationalError as BrokerError

DATABASE_CLASSES: Final = ("08", "53", "57P")
"""SQLSTATE classes of a server that is unreachable, full, or shutting down."""
REDIS_AWAY: Final = (
    BrokerError,
    redis.ConnectionError,
    redis.TimeoutError,
    redis.exceptions.ReadOnlyError,
    redis.exceptions.OutOfMemoryError,
)
_STATE: Final = struct.Struct("dq")
log = structlog.get_logger()


class Outage:
    """The outage of one dependency, shared by a process and its forks."""

    def __init__(self, dependency: str, sentence: str) -> None:
        self.dependency = dependency
        self.sentence = sentence
        """The message for users."""
        self._shared = mmap.mmap(-1, _STATE.size)  # start on the monotonic clock (0: none), number of errors

    def note(self, error: BaseException) -> None:
        """Count an error; log the first one of an outage."""
        began, errors = _STATE.unpack_from(self._shared, 0)
        _STATE.pack_into(self._shared, 0, began or time.monotonic(), errors + 1)
        if not began:
            log.error(f"{self.dependency}_lost", reason=" ".join(str(error).split()) or type(error).__name__)

    def end(self) -> None:
        """Record that the dependency answers."""
        began, errors = _STATE.unpack_from(self._shared, 0)
        if began:
            _STATE.pack_into(self._shared, 0, 0.0, 0)
            log.warning(f"{self.dependency}_restored", outage_s=round(time.monotonic() - began, 1), errors=errors)


DATABASE: Final = Outage("database", "The database does not answer.")
REDIS: Final = Outage("redis", "Redis does not answer.")


def outage_of(error: BaseException | None) -> Outage | None:
    """Return the outage that caused an error; None for another cause."""
    while error is not None:
        if _is_database_away(error):
            return DATABASE
        if isinstance(error, REDIS_AWAY) or str(error).startswith("MISCONF "):
            return REDIS
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return None


def note(error: BaseException) -> bool:
    """Count an error if an outage caused it; return whether one did."""
    outage = outage_of(error)
    if outage is not None:
        outage.note(error)
    return outage is not None


def database_connected(**_: Any) -> None:
    """Receive Django's signal of a new connection."""
    DATABASE.end()


def release_locks_of_lost_machines(connection: Any, **_: Any) -> None:
    """Let PostgreSQL detect within 25 s that this machine is unreachable.

    By default it waits for hours and keeps the row locks of an open transaction.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('tcp_keepalives_idle', '10', false), set_config('tcp_keepalives_interval', '5', false),"
            " set_config('tcp_keepalives_count', '3', false), set_config('tcp_user_timeout', '25000', false)"
        )


def _is_database_away(error: BaseException) -> bool:
    """Return whether psycopg reports a lost connection or an unavailable server."""
    if isinstance(error, psycopg.InterfaceError):
        return "closed" in str(error)
    if not isinstance(error, psycopg.OperationalError):
        return False
    return error.sqlstate is None or error.sqlstate.startswith(DATABASE_CLASSES)  # a failed attempt to connect has none
