"""Concurrency limits of expensive work, per user and in total."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Final

import structlog
from django.core.cache import cache
from redis.exceptions import RedisError

PER_USER: Final = 2
EXPIRES_S: Final = 600
"""A slot is free again after this time if the process that held it was killed."""
RETRY_AFTER_S: Final = 5

log = structlog.get_logger()


class Busy(Exception):
    """The limit is reached; its text is for the user."""


class Slot(AbstractContextManager["Slot"]):
    """One of the slots of a user for one kind of work, until it is released."""

    def __init__(self, keys: list[str], token: str) -> None:
        self._keys, self._token = keys, token

    def release(self) -> None:
        """Free the slot; a second release does nothing."""
        keys, self._keys = self._keys, []
        try:
            # A key that expired may belong to another request by now.
            if ours := [key for key, token in cache.get_many(keys).items() if token == self._token]:
                cache.delete_many(ours)
        except RedisError as error:
            log.warning("slot_not_released", keys=keys, reason=str(error))

    def __exit__(self, *_: object) -> None:
        self.release()


def acquire(user: Any, work: str, *, total: int = 0, expires_s: int = EXPIRES_S) -> Slot:
    """Return a slot of ``user`` for this kind of work.

    ``total`` is the number of slots of all users; 0 sets no such limit. Without Redis nothing is limited. Raise Busy.
    """
    slot = Slot(keys := [], token := secrets.token_hex(8))
    for owner, limit in ((f"user:{user.pk}", PER_USER), ("all", total)):
        if not limit:
            continue
        try:
            keys.append(_free_key(f"limit:{work}:{owner}", limit, token, expires_s))
        except RedisError:
            return slot
        except Busy:
            slot.release()
            raise
    return slot


def _free_key(prefix: str, limit: int, token: str, expires_s: int) -> str:
    for number in range(limit):
        if cache.add(key := f"{prefix}:{number}", token, expires_s):
            return key
    raise Busy(f"{limit} of these are running already. Wait for one to finish, then try again.")


class LimitedResponse(Iterator[bytes]):
    """A streamed body that releases its slot at its end or on an error."""

    def __init__(self, body: Iterable[bytes], slot: Slot) -> None:
        self._body, self._slot = iter(body), slot

    def __next__(self) -> bytes:
        try:
            return next(self._body)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Release the slot; the server calls this after every answer."""
        self._slot.release()
