"""Summaries of repetitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from analysis.statistics import moments_interval, ratio_interval, repetitions_needed, summarise
from analysis.statistics.summary import _resampled_medians, median_interval, outliers
from tests.analysis.statistics.intervals import holds


def test_it_gives_the_t_interval_of_the_geometric_mean_for_few_positive_values() -> None:
    values = [183.1, 180.6, 184.3, 178.8, 186.1]
    summary = summarise(values)
    low, high = stats.t.interval(0.95, 4, loc=np.mean(np.log(values)), scale=stats.sem(np.log(values)))
    assert summary.interval is not None
    assert (summary.interval.low, summary.interval.high) == pytest.approx((np.exp(low), np.exp(high)))
    assert summary.interval.method == "t interval of the geometric mean"
    assert (summary.n, summary.median, summary.minimum, summary.maximum) == (5, 183.1, 178.8, 186.1)


def test_its_interval_of_a_positive_quantity_is_positive_and_of_a_count_ends_at_zero() -> None:
    scattered, counts, signed = summarise([1.2, 5.8]), summarise([0.0, 0.0, 4.0]), summarise([-1.0, 0.0, 4.0])
    assert scattered.interval is not None
    assert scattered.interval.low is not None
    assert 0 < scattered.interval.low < 1.2
    assert counts.interval is not None
    assert counts.interval.low == 0.0
    assert counts.interval.method == "t interval of the mean"
    assert signed.interval is not None
    assert signed.interval.low is not None
    assert signed.interval.low < -1.0


def test_its_interval_of_moments_is_that_of_the_values_where_they_scatter_little_and_never_negative() -> None:
    values = [10.0, 10.1, 9.9, 10.05]
    whole = summarise(values).interval
    assert whole is not None
    ends = moments_interval(float(np.mean(values)), float(np.std(values, ddof=1)), 4, smallest=9.9)
    assert ends == pytest.approx((whole.low, whole.high), rel=1e-3)
    wide = moments_interval(3.5, 3.25, 2, smallest=1.2)
    assert wide is not None
    assert 0 < wide[0] < 3.5 < wide[1]
    assert moments_interval(1.0, 2.0, 3, smallest=0.0) == pytest.approx((0.0, 1 + 2 * stats.t.ppf(0.975, 2) / 3**0.5))
    assert moments_interval(1.0, 2.0, 1, smallest=1.0) is None


def test_it_takes_the_bootstrap_of_the_median_from_ten_values_on_and_says_so() -> None:
    values = np.random.default_rng(3).normal(10, 1, 25).tolist()
    summary = summarise(values)
    assert summary.interval is not None
    assert summary.interval.method.startswith("bootstrap of the median")
    assert holds(summary.interval, summary.median)
    assert summarise(values).interval == summary.interval


def test_its_bootstrap_interval_covers_the_median_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(11)
    intervals = [median_interval(rng.lognormal(0, 0.5, 20)) for _ in range(200)]
    assert 176 <= sum(i is not None and holds(i, 1.0) for i in intervals) <= 199


@pytest.mark.parametrize("n", [3, 10, 11, 40])
def test_its_bootstrap_is_that_of_resampling_every_value(n: int) -> None:
    x = np.sort(np.random.default_rng(n).lognormal(0, 0.5, n))
    rng = np.random.default_rng(5)
    resampled = np.median(x[rng.integers(0, n, (40_000, n))], axis=1)
    apart = stats.ks_2samp(_resampled_medians(x), resampled).statistic
    assert apart < 0.035  # 4000 against 40 000 draws of one distribution exceed that once in thousands


def test_it_gives_no_interval_and_no_claim_for_a_single_value() -> None:
    summary = summarise([5.0])
    assert summary.interval is None
    assert summary.sd is None
    assert not summary.enough


@pytest.mark.parametrize("values", [[], [1.0, float("nan")], [float("inf")]])
def test_it_refuses_what_is_no_sample(values: list[float]) -> None:
    with pytest.raises(ValueError, match="value"):
        summarise(values)


def test_it_shows_an_outlier_and_still_counts_it() -> None:
    values = [10.0, 10.1, 9.9, 10.05, 14.0]
    assert outliers(values) == (4,)
    assert summarise(values).mean == pytest.approx(np.mean(values))


def test_it_seldom_calls_normal_repetitions_outliers() -> None:
    rng = np.random.default_rng(5)
    assert sum(bool(outliers(rng.normal(100, 5, 5))) for _ in range(1000)) <= 20


def test_it_finds_several_outliers_among_many_values() -> None:
    values = [*np.random.default_rng(1).normal(10, 0.1, 30), 15.0, 16.0]
    assert set(outliers(values)) >= {30, 31}


def test_it_propagates_both_spreads_into_a_ratio() -> None:
    rng = np.random.default_rng(8)
    covered = 0
    for _ in range(400):
        interval = ratio_interval(rng.normal(200, 10, 5), rng.normal(100, 5, 5))
        covered += interval is not None and holds(interval, 2.0)
    assert 368 <= covered <= 395
    assert ratio_interval([1.0, 2.0], [0.0, 1.0]) is None
    assert ratio_interval([1.0], [1.0, 2.0]) is None


def test_it_says_how_many_repetitions_an_interval_needs() -> None:
    values = [100.0, 110.0, 90.0, 105.0, 95.0]
    needed = repetitions_needed(values, relative_half_width=0.05)
    assert needed is not None
    relative = np.std(values, ddof=1) / 100 * np.sqrt(4 / stats.chi2.ppf(0.5, 4))
    assert stats.t.ppf(0.975, needed - 1) * relative / np.sqrt(needed) <= 0.05
    assert stats.t.ppf(0.975, needed - 2) * relative / np.sqrt(needed - 1) > 0.05


def test_so_many_repetitions_are_enough_as_often_as_it_says() -> None:
    random, true = np.random.default_rng(4), 0.08
    least = next(n for n in range(3, 200) if stats.t.ppf(0.975, n - 1) * true / np.sqrt(n) <= 0.05)
    enough = [(repetitions_needed(list(random.normal(1, true, 4)), assurance=0.8) or 0) >= least for _ in range(500)]
    assert 0.75 < np.mean(enough) < 0.88
