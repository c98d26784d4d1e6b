"""Limits on costly work: each user does a few exports and imports at once, and packet inspections wait in one line."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import structlog
from django.conf import settings
from django.core.cache import cache
from django.db import connection
from redis import Redis
from redis.exceptions import RedisError

SEATS: Final = 2
COME_AGAIN_S: Final = 5
PATIENCE_S: Final = 5.0
"""A place in the line is kept this long after its last request; pages repeat theirs once a second."""
LONGEST_TURN_S: Final = 60.0
"""The turn of a process that was killed ends after this time."""
_LOCK_S: Final = 5

log = structlog.get_logger()


class Busy(Exception):
    """The user does or awaits as much of this as is allowed at once; its text is shown to the user."""


@contextmanager
def seat(user: Any, work: str) -> Iterator[None]:
    """Do work of one kind, of which each user may do two at once. Raise Busy.

    Advisory locks of the database session count it: PostgreSQL releases those of a process that was killed.
    """
    keys = [(f"seat:{work}:{number}", user.pk or 0) for number in range(SEATS)]
    taken = next((key for key in keys if _lock("pg_try_advisory_lock", key)), None)
    if taken is None:
        raise Busy(f"{SEATS} of these are being made for you already. Wait for one of them, then ask again.")
    try:
        yield
    finally:
        _lock("pg_advisory_unlock", taken)


def _lock(function: str, key: tuple[str, int]) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {function}(hashtext(%s), %s)", key)
        return bool(cursor.fetchone()[0])


class Wait(Exception):
    """Others are before; ``ahead`` is their number, ``ticket`` keeps the place if it is presented again soon."""

    def __init__(self, ticket: str, ahead: int) -> None:
        self.ticket, self.ahead = ticket, ahead
        super().__init__(ticket)


@dataclass(slots=True)
class _State:
    """Running turns and waiting tickets, in order of arrival: each has its user and the time when it ends."""

    running: dict[str, tuple[str, float]] = field(default_factory=dict)
    waiting: dict[str, tuple[str, float]] = field(default_factory=dict)

    def forget_ended(self, now: float) -> None:
        self.running = {key: (user, end) for key, (user, end) in self.running.items() if end > now}
        self.waiting = {key: (user, end) for key, (user, end) in self.waiting.items() if end > now}


@dataclass(frozen=True, slots=True)
class Line:
    """A line before one kind of work. No thread waits in it: the page repeats its request with the ticket that keeps its place."""

    work: str
    of_one: int
    """Done at once for one user."""
    of_all: int
    """Done at once for all users."""
    waiting: int
    """Most tickets of one user."""

    @contextmanager
    def turn(self, user: Any, ticket: str = "") -> Iterator[None]:
        """Do work of this kind when it is the user's turn. Raise Wait with the ticket to present again; Busy.

        Without Redis nothing is counted: pages that need Redis report that themselves.
        """
        owner = str(user.pk)
        ticket, turn = f"{owner}:{ticket or secrets.token_urlsafe(12)}", secrets.token_urlsafe(12)
        try:
            with self._state() as state:
                ahead = self._enter(state, owner, ticket, turn)
        except RedisError:
            ahead = None
        if ahead is not None:
            raise Wait(ticket.removeprefix(f"{owner}:"), ahead)
        try:
            yield
        finally:
            try:
                with self._state() as state:
                    state.running.pop(turn, None)
            except RedisError as error:
                log.warning("turn_not_ended", work=self.work, reason=str(error))

    def _enter(self, state: _State, owner: str, ticket: str, turn: str) -> int | None:
        """Start the turn and return None, or keep the ticket's place and return how many are before it."""
        now = time.time()
        state.forget_ended(now)
        if ticket not in state.waiting and Counter(user for user, _ in state.waiting.values())[owner] >= self.waiting:
            raise Busy(f"{self.waiting} of these wait for you already. Wait for one of them, then ask again.")
        state.waiting[ticket] = (owner, now + PATIENCE_S)
        places = Counter(user for user, _ in state.running.values())
        for ahead, (each, (user, _)) in enumerate(state.waiting.items()):
            is_free = places.total() < self.of_all and places[user] < self.of_one
            if each == ticket:
                if not is_free:
                    return ahead
                break
            places[user] += is_free  # it is for the ticket that came before
        del state.waiting[ticket]
        state.running[turn] = (owner, now + LONGEST_TURN_S)
        return None

    @contextmanager
    def _state(self) -> Iterator[_State]:
        """The state of the line, which other processes cannot read or write meanwhile."""
        key = f"line:{self.work}"
        with _redis().lock(f"rankwire:lock:{key}", timeout=_LOCK_S, blocking_timeout=_LOCK_S):
            state = cache.get(key) or _State()
            yield state
            cache.set(key, state, LONGEST_TURN_S + PATIENCE_S)


@lru_cache(maxsize=1)
def _redis() -> Redis:
    return Redis.from_url(str(settings.CACHES["default"]["LOCATION"]), socket_timeout=5)
