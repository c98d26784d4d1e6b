"""Answers of tuning ladders."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analysis.conclusions import Factor
from tests.analysis.conclusions.designs import GFLOPS, asks, checked, values

NB = Factor("nb", "NB", "load", "", "NB")
GRID = Factor("grid", "grid", "treatment")


def _ladder(rates, **more):
    typical = {(32 * (1 + i // 2), f"{1 + (i + 1) // 2} x 2"): rate for i, rate in enumerate(rates)}
    return asks([NB, GRID], typical, deciding=GFLOPS, steps=True, **more)


def test_it_names_the_change_that_paid_against_the_best_step_before():
    result = checked(_ladder([5.0, 10.0, 8.0, 12.0], peak=24.0))

    assert values(result, "best step") == [4]
    assert values(result, "best change") == [4]
    assert values(result, "gain", step=4) == [pytest.approx(1.2)]
    assert result.figure("gain", step=4, over=2) is not None
    assert values(result, "share of peak") == [pytest.approx(0.5, rel=1e-3)]


def test_a_cause_says_over_which_step_and_near_one_with_three_digits():
    result = checked(_ladder([5.0, 10.0, 11.4, 6.0]))

    assert [c.statement.partition(": ")[2].partition(" (")[0] for c in result.causes] == [
        "2 times", "1.14 times", "only 53 % of step 3"
    ]  # fmt: skip
    assert [c.statement.rpartition(" ")[2] for c in result.causes] == ["1", "2", "3"]


def test_a_loss_and_its_undoing_are_no_gain():
    result = checked(_ladder([10.0, 5.0, 9.0]))

    assert values(result, "best step") == [1]
    assert values(result, "best change") == []
    assert result.strength == "open"


def test_a_share_above_the_peak_questions_the_peak():
    result = checked(_ladder([5.0, 10.0, 12.0], peak=11.0))

    assert values(result, "share of peak") == []
    assert "more than the stated peak" in result.sentence


def test_steps_keep_their_numbers_where_one_has_not_finished():
    question = _ladder([5.0, 10.0, 11.0, 20.0])
    points = [replace(p, values={}) if i == 2 else p for i, p in enumerate(question.points)]

    result = checked(replace(question, points=points))

    assert values(result, "best step") == [4]
    assert values(result, "best change") == [4]


def test_an_unsure_best_step_names_its_rivals():
    result = checked(_ladder([5.0, 10.0, 10.05, 10.02]))

    assert values(result, "as good") == [2, 4]


def test_printed_steps_are_as_printed():
    result = checked(_ladder([5.0, 12.7, 11.0, 14.5], repetitions=[1.0], published=True))

    assert result.strength == "printed"
    assert values(result, "best change") == [4]


def test_one_step_cannot_be_judged():
    assert checked(_ladder([5.0])).strength == "open"


def test_a_step_that_costs_much_is_a_warning():
    result = checked(_ladder([5.0, 10.0, 4.0, 11.0]))

    assert any("step 3" in c.statement and "only 40 %" in c.statement for c in result.causes)
