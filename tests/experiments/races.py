"""Concurrent access to one row."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from django.db import connection, connections

T = TypeVar("T")


def at_once(work: Callable[[int], T], count: int) -> list[T]:
    """Return results of ``work(0)``, ``work(1)`` ... that start together."""
    barrier = threading.Barrier(count)

    def run(number: int) -> T:
        try:
            connection.ensure_connection()
            barrier.wait(10)
            return work(number)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))
