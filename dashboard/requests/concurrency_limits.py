"""What costs much is done for each person a few times at once: who asks for more waits in a line, or is told to come again."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import structlog
from django.conf import settings
from django.core.cache import cache
from redis import Redis
from redis.exceptions import RedisError

SEATS: Final = 2
FORGOTTEN_S: Final = 600
"""After so long a seat is free again whose holder's process was killed."""
COME_AGAIN_S: Final = 5
PATIENCE_S: Final = 5.0
"""After so long without a question a place in a line is given up; pages ask once a second."""
LONGEST_TURN_S: Final = 60.0
"""After so long a turn counts no more, whose process was killed."""

log = structlog.get_logger()


class Busy(Exception):
    """All seats of this person are taken; its text is for the reader."""


class Seat:
    """One of the places of a person for one kind of work, until it is left."""

    def __init__(self, key: str) -> None:
        self._key = key

    def leave(self) -> None:
        """Make room for the next; leaving twice is leaving once."""
        key, self._key = self._key, ""
        if key:
            try:
                cache.delete(key)
            except RedisError as error:
                log.warning("seat_not_left", key=key, reason=str(error))


def take(user: Any, work: str) -> Seat:
    """Return a seat of ``user`` for this kind of work. Raise Busy when all are taken."""
    for number in range(SEATS):
        key = f"seat:{work}:{user.pk}:{number}"
        try:
            free = cache.add(key, True, FORGOTTEN_S)
        except RedisError:
            return Seat("")  # nobody can count; the pages that need Redis say so themselves
        if free:
            return Seat(key)
    raise Busy(f"{SEATS} of these are being made for you already. Wait for one of them, then ask again.")


class LimitedResponse(Iterator[bytes]):
    """A body that is written piece by piece: its seat is left when the last piece is, or nobody reads on."""

    def __init__(self, body: Iterable[bytes], taken: Seat) -> None:
        self._body, self._seat = iter(body), taken

    def __next__(self) -> bytes:
        try:
            return next(self._body)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Called by the server, however it went."""
        self._seat.leave()


class Wait(Exception):
    """Others are before; ``ahead`` says how many, ``ticket`` keeps the place for who asks again with it soon."""

    def __init__(self, ticket: str, ahead: int) -> None:
        self.ticket, self.ahead = ticket, ahead
        super().__init__(ticket)


# One step, so that two cannot take the same place: forget seats and tickets that are over, join the line, and take a seat when
# nobody before could take it. Returns 0 for a seat, otherwise 1 and those ahead; -1 where too many of this person wait.
_ENTER: Final = """
local held, line, seen = KEYS[1], KEYS[2], KEYS[3]
local now, person, ticket, seat = tonumber(ARGV[1]), ARGV[2], ARGV[3], ARGV[4]
local of_one, of_all, most = tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local function owner(member) return string.match(member, '^(.-):') end
redis.call('ZREMRANGEBYSCORE', held, '-inf', now)
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', seen, '-inf', now)) do
  redis.call('ZREM', line, gone)
  redis.call('ZREM', seen, gone)
end
if not redis.call('ZSCORE', line, ticket) then
  local mine = 0
  for _, each in ipairs(redis.call('ZRANGE', line, 0, -1)) do
    if owner(each) == person then mine = mine + 1 end
  end
  if mine >= most then return -1 end
  redis.call('ZADD', line, now, ticket)
end
redis.call('ZADD', seen, now + tonumber(ARGV[8]), ticket)
local taken, all = {}, 0
for _, each in ipairs(redis.call('ZRANGE', held, 0, -1)) do
  taken[owner(each)] = (taken[owner(each)] or 0) + 1
  all = all + 1
end
local ahead = 0
for _, each in ipairs(redis.call('ZRANGE', line, 0, -1)) do
  local who = owner(each)
  local free = all < of_all and (taken[who] or 0) < of_one
  if each == ticket then
    if not free then return ahead + 1 end
    redis.call('ZREM', line, ticket)
    redis.call('ZREM', seen, ticket)
    redis.call('ZADD', held, now + tonumber(ARGV[9]), seat)
    return 0
  end
  if free then
    taken[who] = (taken[who] or 0) + 1
    all = all + 1
  end
  ahead = ahead + 1
end
"""


@dataclass(frozen=True, slots=True)
class Line:
    """A line before one kind of work, in which nobody holds a thread: who must wait asks again with a ticket that keeps the place."""

    work: str
    of_one: int
    """Done at once for one person."""
    of_all: int
    """Done at once for all."""
    waiting: int
    """Of one person; more are told to come again."""

    @contextmanager
    def turn(self, user: Any, ticket: str = "") -> Iterator[None]:
        """Do work of this kind when nobody before ``user`` waits for it. Raise Wait with the ticket to come again with; Busy."""
        person = str(user.pk)
        ticket, seat = ticket or secrets.token_urlsafe(12), f"{person}:{secrets.token_urlsafe(12)}"
        keys = [f"rankwire:line:{self.work}:{part}" for part in ("held", "line", "seen")]
        limits = [self.of_one, self.of_all, self.waiting, PATIENCE_S, LONGEST_TURN_S]
        try:
            asked: Any = _redis().eval(_ENTER, 3, *keys, time.time(), person, f"{person}:{ticket}", seat, *limits)
        except RedisError:
            asked = 0  # nobody can count; the pages that need Redis say so themselves
        if int(asked) < 0:
            raise Busy(f"{self.waiting} of these wait for you already. Wait for one of them, then ask again.")
        if int(asked):
            raise Wait(ticket, int(asked) - 1)
        try:
            yield
        finally:
            try:
                _redis().zrem(keys[0], seat)
            except RedisError as error:
                log.warning("seat_not_left", key=seat, reason=str(error))


@lru_cache(maxsize=1)
def _redis() -> Redis:
    return Redis.from_url(str(settings.CACHES["default"]["LOCATION"]), socket_timeout=5)
