"""What costs much is done for each person a few times at once: who asks for more is told to come again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import structlog
from django.core.cache import cache
from redis.exceptions import RedisError

SEATS: Final = 2
FORGOTTEN_S: Final = 600
"""After so long a seat is free again whose holder's process was killed."""
COME_AGAIN_S: Final = 5

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


class Seated(Iterator[bytes]):
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


@contextmanager
def seat(user: Any, work: str) -> Iterator[None]:
    """Do work of this kind in a seat of ``user``. Raise Busy when all are taken."""
    taken = take(user, work)
    try:
        yield
    finally:
        taken.leave()
