"""Where the time goes: what the program's own time holds, and start-up and end of the launch apart from it."""

from __future__ import annotations

import pytest

from analysis.answers.parts import parts
from tests.analysis.answers.designs import HOSTS, LOOP, TIME, asks, checked, points, values

LOOPS = {1: 10.0, 2: 6.0, 4: 9.0}
LAUNCHES = {1: 10.5, 2: 6.8, 4: 12.0}
USED = {1: 99.0, 2: 90.0, 4: 50.0}
OWN = {"deciding": LOOP, "own_time": "loop_s", "own_cpu_percent": "used_percent"}
CPU = dict.fromkeys(LOOPS, 100.0)
"""Of the whole launch: not what the loop used."""


def launched(**more):
    return asks([HOSTS], LOOPS, elapsed_s=LAUNCHES, cpu_mean_rank_s=CPU, used_percent=USED, **OWN, **more)


def test_the_parts_add_up_to_the_elapsed_time():
    asked = launched(cores=2)
    for point in asked.points:
        told = parts(asked, point)
        assert told is not None
        assert told.elapsed == pytest.approx(point.median("elapsed_s"))
        assert told.outside == pytest.approx(point.median("elapsed_s") - point.median("loop_s"))
        assert told.computing == pytest.approx(point.median("loop_s") * point.median("used_percent") / 100)


def test_the_loss_is_that_of_the_program_s_own_time():
    given = checked(launched())

    assert values(given, "best size") == [2]
    messages = 4.5 - 0.6
    assert given.causes[0].explains == pytest.approx(min(messages, 3.0))
    assert "waiting for messages" in given.causes[0].statement
    assert sum(c.explains or 0 for c in given.causes if "start-up" not in c.statement) <= 3.0 + 1e-9


def test_parts_that_grow_by_more_than_the_loss_are_told_with_what_falls():
    shares = {1: 99.0, 2: 70.0, 4: 30.0}
    asked = asks([HOSTS], LOOPS, elapsed_s=LAUNCHES, cpu_mean_rank_s=CPU, used_percent=shares, **OWN, cores=2)

    given = checked(asked)

    at_two, at_four = (parts(asked, asked.points[i]) for i in (1, 2))
    assert at_two is not None
    assert at_four is not None
    grown = [c.explains or 0 for c in given.causes if " more of " in c.statement]
    assert grown == [pytest.approx(at_four.messages - at_two.messages), pytest.approx(at_four.core - at_two.core)]
    assert sum(grown) - (at_two.computing - at_four.computing) == pytest.approx(3.0)
    assert any(c.statement == "1.5 s less of computing" for c in given.causes)
    assert not any("all of it" in c.statement for c in given.causes)


def test_start_up_and_end_stand_apart_behind_the_causes():
    given = checked(launched())

    assert "start-up and end, outside of the program's own loop, take 2.2 s more" in given.causes[-1].statement
    assert given.causes[-1].explains == pytest.approx(3.0 - 0.8)
    assert "tart-up" not in given.sentence


def test_the_head_line_names_start_up_where_it_costs_more_than_any_cause():
    late = {1: 10.5, 2: 6.8, 4: 19.0}

    given = checked(asks([HOSTS], LOOPS, elapsed_s=late, cpu_mean_rank_s=CPU, used_percent=USED, **OWN))

    assert "Start-up and end, outside of the program's own loop, take 9.2 s more." in given.sentence


def test_where_elapsed_time_was_chosen_start_up_is_one_of_its_parts():
    chosen = OWN | {"deciding": TIME, "own_time": "used_s", "own_cpu_percent": ""}
    own = points([HOSTS], {1: 10.0, 2: 6.0, 4: 6.0}, deciding=LOOP)
    asked = asks([HOSTS], {1: 10.5, 2: 6.5, 4: 12.0}, cpu_mean_rank_s={1: 9.0, 2: 5.0, 4: 5.0}, **chosen)
    for point, beside in zip(asked.points, own, strict=True):
        point.values["used_s"] = beside.values["loop_s"]

    given = checked(asked)

    assert given.causes[0].explains == pytest.approx(5.5)
    assert "is start-up and end" in given.causes[0].statement


def test_without_an_own_time_nothing_is_said_of_start_up():
    given = checked(asks([HOSTS], {1: 10.0, 2: 6.0, 4: 9.0}, cpu_mean_rank_s={1: 9.5, 2: 5.0, 4: 5.0}))

    assert not any("start-up" in cause.statement for cause in given.causes)


def test_a_size_that_gains_names_its_start_up_last():
    launches = {1: 10.2, 2: 6.1, 4: 4.0}
    shares = {1: 99.0, 2: 90.0, 4: 80.0}
    given = checked(
        asks([HOSTS], {1: 10.0, 2: 5.2, 4: 2.8}, elapsed_s=launches, cpu_mean_rank_s=CPU, used_percent=shares, **OWN)
    )

    assert given.causes[-1].statement.startswith("1.2 s of the 4 s of the launch is start-up and end")
    assert given.causes[-1].explains == pytest.approx(1.2)
