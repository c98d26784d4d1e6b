"""The processor time that a request may use: asked for by the loops whose length people write. Pure.

A signal would end a request anywhere, in the middle of a transaction's bookkeeping too; here it ends where nothing is half done.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_end: ContextVar[float | None] = ContextVar("end_of_processor_time", default=None)


class Exhausted(Exception):
    """The processor time of this request is used up."""


@contextmanager
def seconds(most: float) -> Iterator[None]:
    """Let what runs inside, in this thread, use ``most`` seconds of processor time; 0 is without limit."""
    token = _end.set(time.thread_time() + most if most else None)
    try:
        yield
    finally:
        _end.reset(token)


def check() -> None:
    """Raise Exhausted where the time is used up. Costs half a microsecond."""
    end = _end.get()
    if end is not None and time.thread_time() > end:
        raise Exhausted
