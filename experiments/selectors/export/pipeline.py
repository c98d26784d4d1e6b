"""Parallel steps of an export."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def one_behind(work: Callable[[Item], Result], items: Iterator[Item]) -> Iterator[Result]:
    """Yield the result of each item while a thread works on the next.

    The caller's thread reads ``items``: a database connection belongs to one thread.
    """
    before: Future[Result] | None = None
    with ThreadPoolExecutor(1, thread_name_prefix="export") as thread:
        for item in items:
            after = thread.submit(work, item)
            if before is not None:
                yield before.result()
            before = after
        if before is not None:
            yield before.result()
