"""Order and failures of the parallel steps of an export."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from experiments.selectors.export.pipeline import one_behind


def test_one_behind_keeps_the_order_and_reads_in_the_thread_of_the_caller() -> None:
    readers = set()

    def items() -> Iterator[int]:
        for number in range(5):
            readers.add(threading.get_ident())
            yield number

    worked = list(one_behind(lambda item: (item, threading.get_ident()), items()))
    assert [item for item, _ in worked] == list(range(5))
    assert readers == {threading.get_ident()}
    assert readers.isdisjoint(thread for _, thread in worked)


def test_one_behind_reads_one_item_ahead() -> None:
    read = []

    def items() -> Iterator[int]:
        for number in range(9):
            read.append(number)
            yield number

    results = one_behind(str, items())
    assert next(results) == "0"
    assert read == [0, 1]


def test_one_behind_raises_the_error_of_the_work() -> None:
    with pytest.raises(ZeroDivisionError):
        list(one_behind(lambda item: 1 / item, iter([1, 0, 1])))


@pytest.mark.parametrize("ending", ["closed", "failed"])
def test_one_behind_ends_its_thread(ending: str) -> None:
    before = threading.active_count()

    def items() -> Iterator[int]:
        yield from (1, 2)
        raise ValueError("no rows")

    results = one_behind(str, items())
    assert next(results) == "1"
    if ending == "closed":
        results.close()  # type: ignore[attr-defined]  # a generator
    else:
        with pytest.raises(ValueError, match="no rows"):
            list(results)
    assert threading.active_count() == before
