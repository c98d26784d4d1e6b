"""Scatter of several configurations together, and what is tested by it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from analysis.statistics import equal_means
from analysis.statistics.spread import equal_variances, log_variances


def test_equal_means_is_the_f_test_of_logarithms() -> None:
    groups = [[1.0, 1.1, 1.2], [1.3, 1.2], [1.0, 1.15, 1.05]]
    assert equal_means(groups) == pytest.approx(stats.f_oneway(*map(np.log, groups)).pvalue)


def test_two_repetitions_of_three_sizes_report_a_threefold_change() -> None:
    same = equal_means([[1.2, 1.3], [1.4, 1.5], [3.6, 3.9]])
    assert same is not None
    assert same < 0.01
    assert equal_means([[1.0], [2.0]]) is None
    assert equal_means([[1.0, 2.0]]) is None


@pytest.mark.parametrize(
    ("scatters", "repetitions", "rate"),
    [((0.05,) * 6, 2, 0.05), ((0.05,) * 6, 5, 0.05), ((0.01,) * 5 + (0.3,), 3, 0.08), ((0.01,) * 5 + (0.3,), 5, 0.05)],
)
def test_equal_means_are_seldom_called_unequal(scatters: tuple[float, ...], repetitions: int, rate: float) -> None:
    random = np.random.default_rng(repetitions)
    groups = [[list(np.exp(random.normal(0, sd, repetitions))) for sd in scatters] for _ in range(300)]
    called = sum((equal_means(g) or 0.0) < 0.05 for g in groups)
    assert called <= stats.binom.ppf(0.999, 300, rate)


def test_equal_scatters_are_seldom_called_different_with_two_repetitions() -> None:
    random = np.random.default_rng(1)
    unlike = sum(
        equal_variances(*log_variances([list(np.exp(random.normal(0, 0.05, 2))) for _ in range(12)])) < 0.01
        for _ in range(500)
    )
    assert unlike <= stats.binom.ppf(0.999, 500, 0.02)


def test_values_that_repeat_exactly_claim_no_less_than_clocks_tell() -> None:
    tiny = equal_means([[1.0, 1.0], [1.00001, 1.00001]])
    large = equal_means([[1.0, 1.0], [1.1, 1.1]])
    assert tiny is not None
    assert large is not None
    assert large < 0.001 < 0.5 < tiny
