"""An answer is less sure where other load slowed the trials that it rests on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from analysis.conclusions import ExperimentQuestion, facts
from analysis.conclusions.answering import SLOWED
from analysis.conclusions.goals import decide
from analysis.conclusions.rules.report import find
from analysis.scaling import DISTURBED, Study
from tests.analysis.conclusions.designs import HOSTS, METHOD, asks, checked


def disturbed(by_hosts: dict[int, int]) -> ExperimentQuestion:
    """Two hosts take longer than one, by slowed trials; three trials each."""
    question = asks([HOSTS], {1: 1.0, 2: 1.5})
    points = [replace(point, disturbed=by_hosts.get(point.parameters["hosts"], 0)) for point in question.points]
    return replace(question, points=points)


def other_load(question: ExperimentQuestion) -> str:
    """Return the fact about other load, or ""."""
    output = facts(question, checked(question), find(Study(question.points), question=question))
    return "".join(fact.statement for fact in output if fact.rule == "other_load")


def test_what_nothing_disturbed_is_firm() -> None:
    assert checked(disturbed({})).strength == "firm"
    assert other_load(disturbed({})) == ""


def test_a_point_that_was_mostly_slowed_leaves_no_firm_answer() -> None:
    question = disturbed({2: 2})

    assert checked(question).strength == "moderate"
    assert other_load(question) == "Other load slowed 2 of 6 trials."


@pytest.mark.parametrize(("slowed", "strength"), [(3, "open"), (0, "moderate")])
def test_sizes_that_may_differ_much_are_undecided_if_other_load_slowed_all(slowed: int, strength: str) -> None:
    question = asks([HOSTS], {1: 1.0, 2: 1.1, 3: 3.0}, repetitions=(0.8, 1.0, 1.2))
    question = replace(question, points=[replace(point, disturbed=slowed) for point in question.points])

    result = checked(question)

    assert (result.strength, result.figure("enough") is None) == (strength, strength == "open")
    assert result.missing is not None


def test_a_clear_answer_from_slowed_trials_alone_is_tentative() -> None:
    assert checked(disturbed({1: 3, 2: 2})).strength == "moderate"


def test_excluded_trials_are_counted_and_weaken_nothing() -> None:
    question = disturbed({})
    points = [replace(point, excluded={DISTURBED: point.parameters["hosts"], "failed": 1}) for point in question.points]
    question = replace(question, points=points)

    assert checked(question).strength == "firm"
    assert (
        other_load(question) == "Other load slowed 3 of 9 trials: excluded, as clean trials of the same points count."
    )


def test_times_that_lack_trials_at_their_time_limit_are_named() -> None:
    question = disturbed({})
    points = [replace(point, over_time=2 if point.parameters["hosts"] == 1 else 0) for point in question.points]
    question = replace(question, points=points)
    output = facts(question, checked(question), find(Study(question.points), question=question))
    (fact,) = [fact for fact in output if fact.rule == "time_limit"]
    assert fact.statement == "2 trials met the time limit: the times of 1 host lack the slowest and are too short."
    assert fact.next_step == "Raise the time limit, then run these trials again."


@pytest.mark.parametrize("slowed", [{2: 1}, {1: 1, 2: 1}])
def test_a_single_slowed_trial_of_three_changes_nothing(slowed: dict[int, int]) -> None:
    assert checked(disturbed(slowed)).strength == "firm"


def test_sizes_with_slowed_trials_alone_are_named_and_counted() -> None:
    question = disturbed({1: 3})

    assert other_load(question) == "Other load slowed 3 of 6 trials. At 1 host it slowed every trial that counts."
    assert [(f.where, f.value) for f in checked(question).figures if f.name == SLOWED] == [({"hosts": 1}, 3)]
    assert other_load(disturbed({1: 3, 2: 3})) == "Other load slowed 6 of 6 trials."


@pytest.mark.parametrize(("slowed", "points"), [(2, "1 host, a and 1 host, b"), (3, "3 of 6 configurations")])
def test_slowed_points_of_two_factors_are_named_up_to_two(slowed: int, points: str) -> None:
    question = asks([HOSTS, METHOD], {(hosts, name): 1.0 * hosts for hosts in (1, 2, 4) for name in "ab"})
    some = [replace(point, disturbed=3) for point in question.points[:slowed]]
    question = replace(question, points=[*some, *question.points[slowed:]])

    assert other_load(question).endswith(f"At {points} it slowed every trial that counts.")


def test_a_size_with_one_trial_leaves_the_answer_tentative_and_asks_for_one_more() -> None:
    question = asks([HOSTS], {1: 3.0, 2: 1.0, 4: 1.5})
    first, *others = question.points
    once = [replace(point, values={"elapsed_s": point.values["elapsed_s"][:1]}) for point in others]
    question = replace(question, points=[first, *once])

    result = checked(question)

    assert result.strength == "moderate"
    assert result.missing is not None
    assert result.missing.statement == "1 more repetition at 2 and 4 hosts"
    assert result.missing.points == (({"hosts": 2}, 1), ({"hosts": 4}, 1))
    assert decide(question, precision=None, at_most=9).more == list(result.missing.points)
    noted = facts(question, result, find(Study(question.points), question=question))
    assert [fact.statement for fact in noted if fact.rule == "measured_once"] == [
        "Only one trial each counts at 2 and 4 hosts: their intervals assume the scatter of other points."
    ]
    all_once = replace(question, points=[replace(first, values={"elapsed_s": [3.0]}), *once])
    noted = facts(all_once, checked(all_once), find(Study(all_once.points), question=all_once))
    assert "measured_once" not in {fact.rule for fact in noted}
