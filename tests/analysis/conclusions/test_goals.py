"""Decisions after a round, on simulated trials of known truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from analysis.conclusions import answer
from analysis.conclusions.goals import Decision, decide, further_round, share_of
from benchmarks.goals import NOISES, Simulated, best_sizes, knee, names_best
from tests.analysis.conclusions.truth import TIME


def simulated(truth: dict[int, float], sd: float = 0.02, matters: float = 0.02, noise: str = "log-normal") -> Simulated:
    of_noise, drift = NOISES[noise]
    return Simulated(truth, of_noise, sd, drift, np.random.default_rng(1), equal=1 + matters)


def after(made: Simulated, repetitions: int, **limits: float | None) -> Decision:
    """Return the decision after a first round."""
    made.run(dict.fromkeys(made.truth, repetitions))
    return decide(made.question(), **{"precision": None, "at_most": 30, **limits})  # type: ignore[arg-type]


def test_later_looks_spend_half_of_the_one_before() -> None:
    assert [share_of(rounds) for rounds in (1, 8, 9, 10)] == [0.2, 0.2, 0.1, 0.05]
    assert sum(share_of(rounds) for rounds in range(9, 60)) <= 0.2


def test_size_that_is_measurably_best_is_an_answer() -> None:
    decision = after(simulated({1: 20.0, 2: 10.0, 4: 15.0}), 3)

    assert decision.outcome == "answered"
    assert {number["where"]["hosts"] for number in decision.numbers if number["where"]} == {1, 2, 4}


def test_sizes_equal_within_what_matters_are_an_answer() -> None:
    made = simulated({1: 20.0, 2: 10.0, 4: 10.0}, sd=0.01, matters=0.05)
    decision = after(made, 5)

    assert decision.outcome == "answered"
    assert best_sizes(answer(made.question())) == {2.0, 4.0}
    assert decide(replace(made.question(), equal=1.001), precision=None, at_most=30).outcome == "continue"


def test_a_slower_size_than_matters_is_no_right_answer() -> None:
    made = simulated({1: 20.0, 2: 10.0, 4: 15.0})
    assert after(made, 3).outcome == "answered"
    result = answer(made.question())

    assert names_best(result, {1: 20.0, 2: 10.0, 4: 15.0}, 1.02)
    assert names_best(result, {1: 20.0, 2: 10.0, 4: 9.0}, 1.25)
    assert not names_best(result, {1: 20.0, 2: 10.0, 4: 9.0}, 1.02)
    assert not names_best(replace(result, figures=()), {2: 10.0}, 1.02)


def test_open_points_get_at_most_half_of_their_repetitions() -> None:
    decision = after(simulated({1: 30.0, 2: 10.0, 4: 10.2}, sd=0.05), 8)

    assert decision.outcome == "continue"
    assert {parameters["hosts"] for parameters, _ in decision.more} == {2, 4}
    assert all(1 <= count <= 4 for _, count in decision.more)


def test_precision_repeats_wide_points_alone() -> None:
    made = simulated({1: 20.0, 2: 10.0})
    made.run({1: 30, 2: 3})
    decision = decide(made.question(), precision=0.02, at_most=40)

    assert decision.outcome == "continue"
    assert [parameters["hosts"] for parameters, _ in decision.more] == [2]
    assert decide(made.question(), precision=0.5, at_most=40).outcome == "precise"
    assert decide(made.question(), precision=0.001, at_most=3).outcome == "at_most"


def test_larger_sizes_are_left_out_once_the_time_rises() -> None:
    made = simulated(knee(4), sd=0.01)
    decision = made.to_end(precision=None, at_most=30, sizes=range(1, 65))

    assert decision.outcome == "answered"
    assert max(made.values) < 64
    assert "hosts were not run: the time rises." in decision.reason


def test_drift_that_repetitions_do_not_remove_is_said() -> None:
    made = simulated({1: 20.0, 2: 10.0, 4: 10.0}, sd=0.01)
    made.drift = 0.01
    made.run(dict.fromkeys(made.truth, 12))

    drift = answer(made.question()).drift
    decision = decide(made.question(), precision=None, at_most=30)

    assert drift is not None
    assert drift.low is not None
    assert drift.low > 0
    assert decision.outcome == "undecided"
    assert not decision.more
    assert decision.reason.endswith("The trials drift: more of them would not decide it.")


def test_a_user_may_request_a_further_round_of_all_points() -> None:
    made = simulated({1: 20.0, 2: 10.0, 4: 15.0})
    ended = after(made, 3)
    assert not ended.more

    decision = further_round(made.question(), ended, at_least=3, at_most=30)

    assert [(parameters["hosts"], count) for parameters, count in decision.more] == [(1, 2), (2, 2), (4, 2)]


@pytest.mark.parametrize("noise", ["log-normal", "heavy tails (t, 3)"])
def test_few_experiments_without_an_effect_claim_one(noise: str) -> None:
    claiming = 0
    for seed in range(25):
        claims: list[bool] = []
        made = simulated({1: 10.0, 2: 10.0, 3: 10.0}, sd=0.05, noise=noise)
        made.random = np.random.default_rng([7, seed])
        made.to_end(precision=None, at_most=30, seen=claims)
        claiming += any(claims)
    assert claiming <= 4, "at a rate of 5 % more than 4 of 25 have a probability of 0.7 %"


def test_goal_without_results_claims_nothing() -> None:
    made = simulated({1: 20.0, 2: 10.0})
    made.run({1: 3, 2: 3})
    question = made.question()
    empty = replace(question, points=[replace(point, values={TIME.metric: []}) for point in question.points])

    assert decide(empty, precision=None, at_most=30).outcome == "no_result"
