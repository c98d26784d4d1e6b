"""A line before costly work: turns in order, capped for each person and for all, places that end, and no thread that waits."""

from __future__ import annotations

import time
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import pytest
from redis.exceptions import ConnectionError as NoRedis

from dashboard.requests import concurrency_limits
from dashboard.requests.concurrency_limits import Busy, Line, Wait

pytestmark = pytest.mark.usefixtures("empty_redis")
LINE = Line("tests", of_one=1, of_all=2, waiting=2)
ADA, EVE, OTTO = (SimpleNamespace(pk=number) for number in (1, 2, 3))


def ahead(person: Any, ticket: str) -> int | None:
    """How many are before ``person`` with this ticket; None where it was their turn."""
    try:
        with LINE.turn(person, ticket):
            return None
    except Wait as place:
        return place.ahead if place.ticket == ticket else -1


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A clock that stands."""
    clock = SimpleNamespace(now=time.time())
    monkeypatch.setattr(concurrency_limits, "time", SimpleNamespace(time=lambda: clock.now))
    return clock


def test_a_person_waits_for_the_own_turn_and_others_do_not(clock: Any) -> None:
    with LINE.turn(ADA):
        assert ahead(ADA, "second") == 0
        assert ahead(EVE, "first") is None
    assert ahead(ADA, "second") is None


def test_who_came_first_is_first(clock: Any) -> None:
    with ExitStack() as turns:
        for person in (ADA, EVE):
            turns.enter_context(LINE.turn(person))
        for place, (person, ticket) in enumerate([(OTTO, "a"), (ADA, "b"), (EVE, "c")]):
            clock.now += 0.1
            assert ahead(person, ticket) == place
    with LINE.turn(ADA, "b"):
        assert ahead(EVE, "c") == 1, "one seat is free, and it is for who came before"
        assert ahead(OTTO, "a") is None
        assert ahead(EVE, "c") is None


def test_who_asks_for_too_much_waits_behind_nobody_elses_back(clock: Any) -> None:
    with LINE.turn(ADA):
        assert [ahead(ADA, ticket) for ticket in "ab"] == [0, 1]
        with pytest.raises(Busy, match="2 of these wait for you already"), LINE.turn(ADA, "c"):
            pass
        assert ahead(EVE, "d") is None, "the second seat is for others"


def test_one_ticket_is_no_way_to_more_seats(clock: Any) -> None:
    with LINE.turn(ADA, "same"):
        assert ahead(ADA, "same") == 0


def test_a_place_that_nobody_asks_for_is_given_up(clock: Any) -> None:
    with LINE.turn(ADA), LINE.turn(EVE):
        assert ahead(OTTO, "gone") == 0
        clock.now += concurrency_limits.PATIENCE_S + 1
        assert ahead(ADA, "here") == 0


def test_a_turn_whose_process_was_killed_ends(clock: Any) -> None:
    killed = LINE.turn(ADA)
    killed.__enter__()
    assert ahead(ADA, "a") == 0
    clock.now += concurrency_limits.LONGEST_TURN_S + 1
    assert ahead(ADA, "a") is None


def test_it_does_the_work_where_nobody_can_count(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> int:
        raise NoRedis

    monkeypatch.setattr(concurrency_limits, "_redis", lambda: SimpleNamespace(eval=broken, zrem=broken))
    assert ahead(ADA, "a") is None
