"""Outliers are found, reported, and no part of other points' scatter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from analysis.conclusions import facts
from analysis.conclusions.answering import OUTLIERS
from analysis.conclusions.observations.outliers import find_outliers
from analysis.conclusions.observations.scatter import SimultaneousIntervals
from analysis.conclusions.observations.scatter_groups import COMMON, ScatterGroups
from analysis.conclusions.rules.report import find
from analysis.scaling import Study
from benchmarks.answers import disturbed, skewed
from tests.analysis.conclusions.designs import HOSTS, asks, checked, values

STEADY = [[1.0, 1.01, 0.99], [1.02, 1.0, 1.01], [1.1, 1.11, 1.09], [1.2, 1.21, 1.2]]


def marked(groups: Sequence[Sequence[float]]) -> list[list[bool]]:
    return [mask.tolist() for mask in find_outliers(groups)]


def test_it_marks_the_one_value_that_is_far_from_all_others():
    assert marked([*STEADY, [1.3, 1.31, 2.6]]) == [[False] * 3] * 4 + [[False, False, True]]


def test_two_outliers_do_not_hide_each_other():
    result = marked([*STEADY, *STEADY, [1.3, 1.31, 2.6], [2.6, 1.31, 1.3]])

    assert result[-2:] == [[False, False, True], [True, False, False]]


def test_of_two_values_that_disagree_one_is_marked():
    assert [sum(mask) for mask in marked([*STEADY, [1.0, 2.0]])] == [0, 0, 0, 0, 1]


@pytest.mark.parametrize("groups", [[[1.0, 1.1]], [[1.0], [2.0]], [[5.5, 5.5], [5.6, 5.7], [7.1, 7.0], [8.2, 8.2]]])
def test_few_values_and_values_that_repeat_by_rounding_have_no_outlier(groups):
    assert not any(map(any, marked(groups)))


@pytest.mark.parametrize("repetitions", [2, 3, 5])
def test_trials_without_outliers_rarely_seem_to_have_one(repetitions):
    random, count, trials = np.random.default_rng(20), 0, 400

    for _ in range(trials):
        count += any(map(any, marked([np.exp(random.normal(0, 0.05, repetitions)) for _ in range(6)])))

    assert count <= stats.binom.ppf(0.999, trials, 0.01)


def test_an_outlier_of_one_point_leaves_the_claims_of_the_others():
    claims = SimultaneousIntervals([*STEADY, [1.3, 1.31, 2.6]])

    assert claims.larger(2, 0)
    assert claims.larger(3, 2)
    assert claims.outliers == [0, 0, 0, 0, 1]
    assert claims.scatter is not None
    assert claims.scatter.sd < 0.02


def test_the_interval_of_three_trials_holds_the_outlier():
    claims = SimultaneousIntervals([*STEADY, [1.3, 1.31, 2.6]])
    interval = claims.value(4)

    assert interval is not None
    assert (interval.high or 0) > 2.6
    assert claims.larger(4, 0) is False
    assert SimultaneousIntervals([*STEADY, [3.3, 3.31, 5.0]]).larger(4, 0)


def test_trials_that_are_far_better_than_the_others_make_a_noisy_point():
    fast, slow = [1.3, 1.31, 0.6], [1.3, 1.31, 2.6]

    assert SimultaneousIntervals([*STEADY, fast]).outliers[-1] == 0
    assert SimultaneousIntervals([*STEADY, fast], higher_is_better=True).outliers[-1] == 1
    assert SimultaneousIntervals([*STEADY, slow], higher_is_better=True).outliers[-1] == 0


def test_two_pairs_of_a_level_are_too_few_for_a_scatter_of_its_own():
    pairs = [[1.0, 1.0001], [1.1, 1.1001], [1.2, 1.26], [1.3, 1.36]]

    assert "'a'" not in ScatterGroups.from_values(pairs, [["'a'", "'a'", "'b'", "'b'"]]).of
    three = [*pairs[:2], [1.1, 1.1002], *pairs[2:], [1.1, 1.16]]
    assert ScatterGroups.from_values(three, [["'a'"] * 3 + ["'b'"] * 3]).of == ["'a'"] * 3 + ["'b'"] * 3
    assert set(ScatterGroups.from_values([[1.0, 1.01]] * 4, [["a", "a", "b", "b"]]).of) == {COMMON}


@pytest.mark.parametrize("groups", [[], [[1.0], [2.0]]])
def test_points_without_repetitions_share_one_scatter_that_is_unknown(groups):
    claims = SimultaneousIntervals(groups, levels=[["a", "b"][: len(groups)]])

    assert claims.scatter is None
    assert claims.outliers == [0] * len(groups)


def test_more_repetitions_claim_more_where_one_trial_in_twenty_is_an_outlier():
    two, three, five = (disturbed(4, n, 0.05, effect=2.3, trials=150) for n in (2, 3, 5))

    assert three < two
    assert five < three
    assert five < 0.05


@pytest.mark.parametrize("repetitions", [3, 5])
def test_outliers_make_no_false_claims(repetitions):
    trials = 200

    assert disturbed(4, repetitions, 0.05, effect=1.0, trials=trials) * trials <= stats.binom.ppf(0.999, trials, 0.05)


def test_intervals_hold_the_median_of_times_with_an_exponential_tail():
    points, trials = 12, 150

    held = skewed(points, 5, 0.05, trials=trials)

    assert held * points * trials >= stats.binom.ppf(0.001, points * trials, 0.965)


def test_an_answer_reports_the_outliers_that_it_judges_without():
    question = asks([HOSTS], {1: 1.0, 2: 1.5, 4: 2.0})
    assert values(checked(question), OUTLIERS) == []
    points = [
        replace(p, values={"elapsed_s": [*p.values["elapsed_s"][:2], 4.0]}) if p.parameters == {"hosts": 2} else p
        for p in question.points
    ]

    question = replace(question, points=points)
    result = checked(question)

    assert values(result, OUTLIERS, hosts=2) == [1]
    (fact,) = facts(question, result, find(Study(points), question=question))[-1:]
    assert (fact.rule, fact.statement) == ("outliers", "1 of 9 trials is an outlier, excluded from the scatter.")


def test_find_outliers_agrees_with_the_test_as_it_is_published() -> None:
    random = np.random.default_rng(9)
    for _ in range(200):
        groups = [np.exp(random.normal(0, 0.05, random.integers(3, 7))) for _ in range(random.integers(3, 9))]
        for _ in range(random.integers(0, 3)):
            group = groups[random.integers(len(groups))]
            group[random.integers(len(group))] *= random.uniform(1.2, 3)
        outliers = {(i, k) for i, mask in enumerate(find_outliers(groups)) for k in np.flatnonzero(mask)}
        assert outliers == _rosner([np.log(group) for group in groups]), groups


def _rosner(groups: list[np.ndarray]) -> set[tuple[int, int]]:
    """Rosner's test: residuals and scatter are computed again after each removal."""
    left = {(i, k): float(value) for i, group in enumerate(groups) for k, value in enumerate(group)}
    removed: list[tuple[int, int]] = []
    outliers, most = 0, 0.2 * len(left)
    while len(removed) < most:
        means = {i: (np.mean(values), len(values)) for i in {i for i, _ in left} if (values := _of(left, i))}
        freedom = len(left) - len(means)
        if freedom <= 2:
            break
        share = {key: (v - means[key[0]][0]) ** 2 * (n := means[key[0]][1]) / max(n - 1, 1) for key, v in left.items()}
        total = sum((v - means[i][0]) ** 2 for (i, _), v in left.items())
        worst = max(share, key=share.__getitem__)
        t = np.sqrt(share[worst] / ((total - share[worst]) / (freedom - 1)))
        candidates = sum(0.5 if means[i][1] == 2 else 1.0 for i, _ in left if means[i][1] > 1)
        removed.append(worst)
        outliers = len(removed) if 2 * stats.t.sf(t, freedom - 1) * candidates < 0.01 else outliers
        del left[worst]
    return set(removed[:outliers])


def _of(left: dict[tuple[int, int], float], group: int) -> list[float]:
    return [value for (i, _), value in left.items() if i == group]
