"""Limit of processor time, of a request or a part, checked in loops of any length.

A signal would end a request anywhere, in the middle of a transaction too; here it ends between complete steps.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_end: ContextVar[float | None] = ContextVar("end_of_processor_time", default=None)


class Exhausted(Exception):
    """The processor time is used up."""


@contextmanager
def seconds(most: float) -> Iterator[None]:
    """Limit this thread to ``most`` seconds of processor time inside; 0: no limit.

    An earlier end from outside continues to hold.
    """
    outer = _end.get()
    end = time.thread_time() + most if most else None
    token = _end.set(min((moment for moment in (outer, end) if moment is not None), default=None))
    try:
        yield
    finally:
        _end.reset(token)


def check() -> None:
    """Raise Exhausted if the time is used up. Costs half a microsecond."""
    end = _end.get()
    if end is not None and time.thread_time() > end:
        raise Exhausted
