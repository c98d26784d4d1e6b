"""Retry during an outage of PostgreSQL, which results must survive."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from django.db import OperationalError, close_old_connections
from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_exponential

T = TypeVar("T")


@retry(
    retry=retry_if_exception_type(OperationalError),
    wait=wait_exponential(multiplier=0.2, max=5),
    stop=stop_after_delay(600),
    # A connection that broke answers every further question with the same error until it is closed.
    before_sleep=lambda _state: close_old_connections(),
    reraise=True,
)
def patiently(call: Callable[[], T]) -> T:
    """Call until the database answers, for ten minutes at most, and return the result.

    For queries and changes of state only: these are conditional, so a repeated one is refused (StaleTrial).
    """
    return call()
