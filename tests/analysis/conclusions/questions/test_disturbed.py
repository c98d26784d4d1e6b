"""An answer is less sure where other load slowed the trials that it rests on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analysis.conclusions import ExperimentQuestion
from analysis.scaling import DISTURBED
from tests.analysis.conclusions.designs import HOSTS, asks, checked


def disturbed(by_hosts: dict[int, int]) -> ExperimentQuestion:
    """Two hosts take longer than one, by slowed trials; three trials each."""
    asked = asks([HOSTS], {1: 1.0, 2: 1.5})
    points = [replace(point, disturbed=by_hosts.get(point.parameters["hosts"], 0)) for point in asked.points]
    return replace(asked, points=points)


def test_what_nothing_disturbed_is_firm() -> None:
    assert checked(disturbed({})).strength == "firm"


def test_a_point_that_was_mostly_slowed_leaves_no_firm_answer() -> None:
    given = checked(disturbed({2: 2}))

    assert given.strength == "moderate"
    assert given.sentence.endswith("Other load slowed 2 of 6 trials: measure again on idle machines.")


def test_excluded_trials_are_counted_and_weaken_nothing() -> None:
    asked = disturbed({})
    points = [replace(point, excluded={DISTURBED: point.parameters["hosts"], "failed": 1}) for point in asked.points]
    given = checked(replace(asked, points=points))

    assert given.strength == "firm"
    assert given.sentence.endswith("Other load slowed 3 of 9 trials, 3 of which are excluded.")


@pytest.mark.parametrize("slowed", [{2: 1}, {1: 1, 2: 1}])
def test_a_single_slowed_trial_of_three_changes_nothing(slowed: dict[int, int]) -> None:
    given = checked(disturbed(slowed))

    assert given.strength == "firm"
    assert "Other load" not in given.sentence
