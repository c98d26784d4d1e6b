"""Pooled scatter, simultaneous intervals, and repetitions to settle a claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from analysis.conclusions import Scatter, pooled
from analysis.conclusions.observations.repetitions import Comparison, repetitions_to_settle
from analysis.conclusions.observations.scatter import (
    LEVEL,
    SimultaneousIntervals,
    studentised_range,
)


def test_it_pools_degrees_of_freedom_over_all_points():
    scatter = pooled([[1.0, 1.1], [10.0, 11.0], [5.0]])

    assert scatter is not None
    assert scatter.freedom == 2
    assert scatter.sd == pytest.approx(np.log(1.1) / np.sqrt(2))


def test_it_knows_no_scatter_of_single_values():
    assert pooled([[1.0], [2.0]]) is None
    assert SimultaneousIntervals([[1.0], [20.0]]).ratio(1, 0) is None


@pytest.mark.parametrize(("groups", "freedom"), [(2, 1.0), (4, 4.0), (12, 12.0), (24, 1.5), (3, 500.0), (64, 64.0)])
def test_its_quantiles_of_the_studentised_range_are_those_of_scipy(groups, freedom):
    expected = stats.studentized_range.ppf(LEVEL, groups, freedom)

    assert studentised_range(LEVEL, groups, freedom) == pytest.approx(expected, rel=1e-4)


def test_it_judges_two_points_as_tukey_does():
    a, b = [1.0, 1.1, 1.2], [2.0, 2.1, 2.3]
    expected = stats.tukey_hsd(np.log(b), np.log(a)).confidence_interval(LEVEL)

    ratio = SimultaneousIntervals([a, b]).ratio(1, 0)

    assert ratio is not None
    assert np.log([ratio.low, ratio.high]) == pytest.approx([expected.low[0][1], expected.high[0][1]], rel=1e-3)


def test_noisy_points_do_not_widen_the_intervals_of_steady_ones():
    random = np.random.default_rng(3)
    groups = [list(np.exp(random.normal(0, sd, 8))) for sd in (0.005, 0.005, 0.005, 0.6)]

    claims = SimultaneousIntervals([*groups, [1.05 * v for v in groups[0]]])

    assert claims.larger(4, 0)
    assert not claims.differ(3, 0)


def test_known_scatter_joins_few_repetitions():
    claims = SimultaneousIntervals([[1.0, 1.01], [2.0]], prior=Scatter(0.01, 20, "history"))

    assert claims.scatter is not None
    assert claims.scatter.freedom == 21
    assert claims.scatter.source == "history"
    assert claims.scatter.repeated == 1


def test_repetitions_joined_with_known_scatter_count_for_those_to_come():
    groups = [list(np.exp(middle + np.array([-0.03, 0, 0.03]))) for middle in (0.0, 0.08)]
    joined, unrepeated = (SimultaneousIntervals(groups, prior=Scatter(0.03, 40, "history")) for _ in range(2))
    assert joined.scatter is not None
    unrepeated.scatter = replace(joined.scatter, joined=0.0)

    ends = [repetitions_to_settle(claims, [Comparison(0, 1)]).queued for claims in (joined, unrepeated)]

    assert ends[0] < ends[1]


def test_known_scatter_does_not_overrule_repetitions_that_scatter_more():
    claims = SimultaneousIntervals([[1.0, 1.5], [2.0, 2.6], [1.0, 0.7]], prior=Scatter(0.01, 40, "history"))

    assert claims.scatter is not None
    assert claims.scatter.source == "repetitions"
    assert not claims.larger(1, 0)


def test_points_of_other_slices_give_the_scatter():
    alone = SimultaneousIntervals([[1.0, 1.01], [1.03, 1.04]])
    with_others = SimultaneousIntervals([[1.0, 1.01], [1.03, 1.04]], other_groups=[[5.0, 5.05]] * 10, slices=2)

    assert not alone.larger(1, 0)
    assert with_others.larger(1, 0)


# Two values of a noisy point that happen to agree look like two of a steady point at another value: no test separates them.
@pytest.mark.parametrize(("repetitions", "share"), [(2, 0.17), (3, 0.06), (5, 0.05)])
def test_a_noisy_point_among_steady_ones_is_rarely_separated_from_them(repetitions, share):
    random, count, trials = np.random.default_rng(6), 0, 100

    for _ in range(trials):
        groups = [list(np.exp(random.normal(0, sd, repetitions))) for sd in (*[0.01] * 11, 0.2)]
        claims = SimultaneousIntervals(groups)
        count += any(claims.differ(i, j) for i in range(12) for j in range(i))

    assert count <= stats.binom.ppf(0.999, trials, share)


def test_a_point_that_scatters_more_than_all_others_keeps_its_own_scatter():
    steady = [[1.0, 1.01], [1.02, 1.0], [1.1, 1.11], [1.2, 1.21], [1.3, 1.29], [1.4, 1.41]]
    claims = SimultaneousIntervals([*steady, [1.1, 1.9]])

    assert claims.larger(5, 0)
    assert not claims.differ(6, 0)


def test_pairs_are_distinguished_step_by_step_and_their_intervals_leave_one():
    groups = [[1.0, 1.02], [1.09, 1.11], [1.5, 1.53], [2.0, 2.04]]
    claims = SimultaneousIntervals(groups)
    ratio = claims.ratio(1, 0)

    assert claims.larger(1, 0)
    assert ratio is not None
    assert (ratio.low or 0) > 1
    alone = SimultaneousIntervals(groups).contrast([-1.0, 1.0, 0.0, 0.0])
    assert alone is not None
    assert np.exp(alone[0] + alone[1]) < (ratio.high or 0)


@pytest.mark.parametrize("families", [(), tuple("aabbccdd")])
def test_of_points_that_are_equal_none_is_distinguished_in_95_of_100_experiments(families):
    random, count, trials = np.random.default_rng(10), 0, 400
    pairs = [(i, j) for i in range(8) for j in range(i) if not families or families[i] == families[j]]

    for _ in range(trials):
        claims = SimultaneousIntervals(_unlike(random, [0.05] * 8, 2), families=families)
        count += any(claims.differ(i, j) for i, j in pairs)

    assert count <= stats.binom.ppf(0.999, trials, 0.05)


def test_fewer_comparisons_have_narrower_intervals():
    groups = [[1.0 + 0.01 * i, 1.01 + 0.01 * i] for i in range(10)]
    of_pairs, of_all = (
        SimultaneousIntervals(groups, families="aabbccddee").ratio(1, 0),
        SimultaneousIntervals(groups).ratio(1, 0),
    )

    assert of_pairs is not None
    assert of_all is not None
    assert (of_all.low or 0) < (of_pairs.low or 0) < (of_pairs.high or 0) < (of_all.high or 0)


@pytest.mark.parametrize("scatters", [[0.05] * 5, [0.01, 0.01, 0.01, 0.01, 0.3]])
def test_a_planned_comparison_holds_as_often_as_it_says(scatters):
    random, missed, trials = np.random.default_rng(11), 0, 400

    for _ in range(trials):
        result = SimultaneousIntervals(_unlike(random, scatters, 5)).contrast([1.0, -0.25, -0.25, -0.25, -0.25])
        assert result is not None
        missed += abs(result[0]) > result[1]

    assert missed <= stats.binom.ppf(0.999, trials, 0.05)


NOISY_LEVEL = (*[0.01] * 8, *[0.2] * 4)
"""Scatters of twelve points: three levels of one factor, four of another; the third level of the first is noisy."""
LEVELS = [[name for name in "abc" for _ in range(4)], [name for _ in range(3) for name in "wxyz"]]


def _unlike(random: np.random.Generator, scatters: Sequence[float], repetitions: int) -> list[list[float]]:
    return [list(np.exp(random.normal(0, sd, repetitions))) for sd in scatters]


@pytest.mark.parametrize("repetitions", [2, 3])
def test_points_of_a_noisy_level_are_rarely_distinguished(repetitions):
    random, count, trials = np.random.default_rng(8), 0, 200

    for _ in range(trials):
        claims = SimultaneousIntervals(_unlike(random, NOISY_LEVEL, repetitions), levels=LEVELS)
        count += any(claims.differ(i, j) for i in range(12) for j in range(i))

    assert count <= stats.binom.ppf(0.999, trials, 0.05)


def test_two_repetitions_are_pooled_within_the_level_that_they_scatter_by():
    random, count, trials = np.random.default_rng(9), 0, 100

    for _ in range(trials):
        groups = _unlike(random, NOISY_LEVEL, 2)
        groups[0] = [1.12 * value for value in groups[0]]
        count += SimultaneousIntervals(groups, levels=LEVELS).larger(0, 4)

    assert count >= 90
    assert all(SimultaneousIntervals(_unlike(random, [0.01] * 12, 2), levels=LEVELS)._common)


def test_pairs_that_repeat_exactly_by_rounding_are_pooled_with_the_others():
    claims = SimultaneousIntervals([[5.5, 5.5], [5.6, 5.7], [7.1, 7.0], [8.2, 8.2]])

    assert claims.scatter is not None
    assert claims.scatter.freedom == 4
    assert claims.larger(3, 0)


def test_identical_values_are_no_proof_of_anything_smaller_than_clocks_tell():
    claims = SimultaneousIntervals([[1.0, 1.0], [1.0001, 1.0001]])

    assert not claims.differ(0, 1)
