"""Comparison of groups with a baseline."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from analysis.catalogue import METRICS
from analysis.statistics import compare_groups, differs_anywhere, ratio_interval
from analysis.statistics.comparison import WELCH, cliffs_delta, hedges_g, rank_test
from tests.analysis.statistics.intervals import holds

_GROUPS = {
    "before": {"elapsed_s": [10.0, 10.2, 9.9, 10.1, 10.05], "packets": [100, 101, 99, 100, 102]},
    "after": {"elapsed_s": [12.0, 12.4, 11.9, 12.1, 12.2], "packets": [100, 103, 98, 101, 99], "new": [1.0]},
}


def test_it_finds_a_clear_difference_and_its_size() -> None:
    elapsed, packets = compare_groups(_GROUPS, baseline="before")
    assert elapsed.verdict == "higher"
    assert elapsed.ratio == pytest.approx(12.1 / 10.05)
    assert elapsed.ratio_interval is not None
    assert holds(elapsed.ratio_interval, 1.2)
    assert (elapsed.cliffs_delta, elapsed.effect) == (1.0, "large")
    assert packets.verdict == "no clear change"
    assert packets.p_adjusted is not None
    assert packets.p_value is not None
    assert packets.p_adjusted >= packets.p_value


def test_it_says_lower_for_the_other_direction() -> None:
    assert compare_groups(_GROUPS, baseline="after")[0].verdict == "lower"


def test_it_never_calls_two_repetitions_a_difference() -> None:
    groups = {"a": {"t": [1.0, 1.0]}, "b": {"t": [9.0, 9.0]}}
    (comparison,) = compare_groups(groups, baseline="a")
    assert comparison.verdict == "too few repetitions"
    assert comparison.p_value is None
    assert comparison.ratio == 9.0


def test_three_against_three_claim_what_their_interval_shows() -> None:
    groups = {"a": {"t": [1.0, 1.1, 1.2]}, "b": {"t": [9.0, 9.1, 9.2]}}
    (comparison,) = compare_groups(groups, baseline="a")
    assert comparison.verdict == "higher"
    assert comparison.test == WELCH
    assert comparison.p_value == pytest.approx(
        stats.ttest_ind(np.log(groups["b"]["t"]), np.log(groups["a"]["t"]), equal_var=False).pvalue
    )
    assert comparison.ratio_interval is not None
    assert comparison.ratio_interval.level == 0.95
    assert (comparison.ratio_interval.low or 0) > 1


@pytest.mark.parametrize("repetitions", [3, 5])
def test_a_verdict_of_one_metric_is_what_its_interval_shows(repetitions: int) -> None:
    rng = np.random.default_rng(14)
    for ratio in (1.0, 1.05, 1.2, 2.0):
        groups = {
            name: {"t": list(r * np.exp(rng.normal(0, 0.05, repetitions)))} for name, r in (("a", 1), ("b", ratio))
        }
        (comparison,) = compare_groups(groups, baseline="a")
        interval = comparison.ratio_interval
        assert interval is not None
        excludes_one = not (interval.low or 0) <= 1 <= (interval.high or 0)
        assert (comparison.verdict in ("higher", "lower")) is excludes_one


@pytest.mark.parametrize("seed", range(5))
def test_verdicts_of_many_metrics_agree_with_their_corrected_intervals(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ratios = dict(zip(METRICS, rng.choice([1.0, 1.03, 1.1, 2.0], 60), strict=False))
    groups = {
        side: {name: list(r**is_b * np.exp(rng.normal(0, 0.03, 4))) for name, r in ratios.items()}
        for side, is_b in (("a", 0), ("b", 1))
    }
    comparisons = compare_groups(groups, baseline="a")
    clear = [c for c in comparisons if c.verdict in ("higher", "lower")]
    assert 0 < len(clear) < len(comparisons)
    for c in comparisons:
        interval, values = c.ratio_interval, ratio_interval(groups["b"][c.metric], groups["a"][c.metric])
        assert interval is not None
        assert values is not None
        assert (interval.low or 0) <= (values.low or 0) <= (values.high or 0) <= (interval.high or 0)
        excludes_one = not (interval.low or 0) <= 1 <= (interval.high or 0)
        assert (c in clear) is excludes_one


@pytest.mark.parametrize("values", [([0.0, 1.0, 2.0], [7.0, 8.0, 9.0]), ([1.0] * 3, [9.0] * 3)])
def test_values_without_an_interval_are_tested_by_rank(values: tuple[list[float], list[float]]) -> None:
    (comparison,) = compare_groups({"a": {"t": values[0]}, "b": {"t": values[1]}}, baseline="a")
    assert comparison.verdict == "too few repetitions"
    assert comparison.p_value == pytest.approx(0.1)


@pytest.mark.parametrize("spread", [0.01, 0.2])
def test_three_against_three_claim_nothing_of_equal_sides_in_95_of_100_comparisons(spread: float) -> None:
    rng, trials = np.random.default_rng(15), 400
    false = 0
    for _ in range(trials):
        groups = {name: {"t": list(np.exp(rng.normal(0, spread, 3)))} for name in "ab"}
        false += compare_groups(groups, baseline="a")[0].verdict in ("higher", "lower")
    assert false <= stats.binom.ppf(0.999, trials, 0.05)


def test_it_finds_one_change_among_all_metrics_with_five_trials() -> None:
    rng = np.random.default_rng(8)
    same = {name: rng.normal(10, 1, 5).tolist() for name in METRICS if name != "elapsed_s"}
    again = {name: rng.normal(10, 1, 5).tolist() for name in METRICS if name != "elapsed_s"}
    groups = {
        "a": {**same, "elapsed_s": [10.0, 10.1, 9.9, 10.2, 10.05]},
        "b": {**again, "elapsed_s": [11.0, 11.1, 10.9, 11.2, 11.05]},
    }
    comparisons = {c.metric: c for c in compare_groups(groups, baseline="a")}
    assert comparisons["elapsed_s"].verdict == "higher"
    elapsed = comparisons["elapsed_s"]
    assert elapsed.p_adjusted == pytest.approx(6 * (elapsed.p_value or 0))  # among the six headline metrics
    assert comparisons["packets"].verdict == "no clear change"


def test_it_keeps_an_unknown_baseline_out() -> None:
    with pytest.raises(KeyError):
        compare_groups(_GROUPS, baseline="elsewhere")


def test_its_exact_test_equals_mann_whitney() -> None:
    rng = np.random.default_rng(4)
    for shift in (0.0, 0.5, 2.0):
        a, b = rng.normal(shift, 1, 6), rng.normal(0, 1, 5)
        p, name = rank_test(a, b)
        assert p == pytest.approx(stats.mannwhitneyu(a, b, method="exact").pvalue)
        assert name.startswith("exact")


@pytest.mark.parametrize("values", [(2000.0, 4000.0), (3.3, 0.7)])
def test_values_that_repeat_exactly_are_tested_by_permutation(values: tuple[float, float]) -> None:
    base, other = values
    groups = {"a": {"mpi_calls": [base] * 6}, "b": {"mpi_calls": [other] * 3}}
    (row,) = compare_groups(groups, baseline="a")
    assert row.p_value == pytest.approx(1 / math.comb(9, 3))
    assert row.test == "exact permutation test of ranks"
    assert row.verdict == ("higher" if other > base else "lower")


def test_its_test_of_many_ranks_is_that_of_mann_and_whitney() -> None:
    rng = np.random.default_rng(6)
    a, b = rng.normal(0.4, 1, 40), rng.normal(0, 1, 40)
    assert rank_test(a, b)[0] == pytest.approx(stats.mannwhitneyu(a, b).pvalue)
    assert rank_test(np.ones(41), np.ones(40))[0] == 1


def test_its_effect_sizes_are_those_of_their_papers() -> None:
    a, b = np.array([1.0, 2.0, 3.0]), np.array([2.0, 3.0, 4.0])
    assert cliffs_delta(a, b) == pytest.approx((1 - 6) / 9)
    some, others = np.random.default_rng(8).integers(0, 9, (2, 40)).astype(float)
    assert cliffs_delta(some, others[:30]) == np.sign(some[:, None] - others[:30]).mean()
    assert hedges_g(a, b) == pytest.approx(-1.0 * (1 - 3 / 15))
    assert hedges_g(np.array([1.0, 1.0]), np.array([1.0, 1.0])) is None


def test_it_separates_equal_configurations_from_different_ones() -> None:
    rng = np.random.default_rng(12)
    same = [differs_anywhere(rng.normal(100, 5, (6, 5)).tolist()) for _ in range(400)]
    assert sum(p < 0.005 for p in same) <= 6
    assert differs_anywhere([[10.0, 10.1, 9.9], [12.0, 12.1, 11.9]]) < 0.001
    assert differs_anywhere([[7, 7, 7], [9, 9, 9]]) == 0.0
    assert differs_anywhere([[7.0, 7.0], [7.0, 7.0]]) == 1.0
    assert differs_anywhere([[1.0]]) == 1.0


def test_one_far_outlier_makes_no_difference_between_configurations() -> None:
    rng = np.random.default_rng(13)
    samples = rng.normal(100, 1, (6, 5))
    samples[2, 3] = 5000.0
    assert differs_anywhere(samples.tolist()) > 0.05


def test_differs_anywhere_agrees_with_the_tests_of_scipy() -> None:
    random = np.random.default_rng(31)
    for _ in range(60):
        groups = [np.round(np.exp(random.normal(0, 1, random.integers(2, 9))), 1) + 0.1 for _ in range(4)]
        by_rank = float(stats.kruskal(*groups).pvalue)
        by_mean = float(stats.f_oneway(*map(np.log, groups)).pvalue)
        expected = by_mean if by_rank < 0.05 else max(by_mean, by_rank)
        assert differs_anywhere([group.tolist() for group in groups]) == pytest.approx(expected)
