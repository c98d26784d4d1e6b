"""Transfer times: against exact lines, another fit, and their coverage."""

import math

import numpy as np
import pytest
from scipy.optimize import curve_fit

from analysis.conclusions.observations.transfer import fit_transfer

SIZES = [2**n for n in range(0, 25, 2)]
ALPHA_S, BETA_BPS = 30e-6, 120e6


def line(sizes=SIZES):
    return np.array([ALPHA_S + n / BETA_BPS for n in sizes])


def test_it_finds_an_exact_line():
    fit = fit_transfer(SIZES, line())
    assert fit.latency_s == pytest.approx(ALPHA_S)
    assert fit.bandwidth_Bps == pytest.approx(BETA_BPS)
    assert fit.half_bandwidth_bytes == pytest.approx(ALPHA_S * BETA_BPS)
    assert fit.residual_share == pytest.approx(0, abs=1e-9)
    assert fit.points == len(SIZES)


def test_it_means_half_of_the_bandwidth_by_the_half_bandwidth_size():
    fit = fit_transfer(SIZES, line())
    size = fit.half_bandwidth_bytes
    assert size / (fit.latency_s + size / fit.bandwidth_Bps) == pytest.approx(fit.bandwidth_Bps / 2)


def test_it_fits_noisy_times_like_scipys_curve_fit_of_their_logarithms():
    times = line() * np.random.default_rng(7).normal(1, 0.1, len(SIZES))
    fit = fit_transfer(SIZES, times)
    (alpha, slope), covariance = curve_fit(
        lambda n, a, b: np.log(a * 1e-6 + b * 1e-9 * n), np.array(SIZES, float), np.log(times), p0=(20, 5)
    )
    assert fit.latency_s == pytest.approx(alpha * 1e-6, rel=1e-5)
    assert fit.bandwidth_Bps == pytest.approx(1e9 / slope, rel=1e-5)
    low, high = fit.latency_interval_s
    spread = math.sqrt(covariance[0, 0]) / alpha
    assert math.log(high / low) / 2 == pytest.approx(2.2010 * spread, rel=1e-3), "t quantile of 11 degrees of freedom"


def test_it_does_not_take_noise_for_another_latency():
    random = np.random.default_rng(3)
    fits = [fit_transfer(SIZES, line() * random.lognormal(0, 0.3, len(SIZES))) for _ in range(400)]
    assert np.median([fit.latency_s for fit in fits]) == pytest.approx(ALPHA_S, rel=0.03)
    assert np.median([fit.bandwidth_Bps for fit in fits]) == pytest.approx(BETA_BPS, rel=0.03)


def test_it_does_not_let_late_short_messages_turn_the_line():
    times = line()
    times[:4] *= 50  # as on a machine with fewer processors than ranks
    fit = fit_transfer(SIZES, times)
    assert fit.bandwidth_Bps == pytest.approx(BETA_BPS, rel=0.5)
    assert ALPHA_S < fit.latency_s < 50 * ALPHA_S


def test_the_true_values_its_intervals_hold_as_often_as_they_say():
    random = np.random.default_rng(11)
    held = np.zeros(3)
    for _ in range(400):
        fit = fit_transfer(SIZES, line() * random.normal(1, 0.05, len(SIZES)))
        truths = (ALPHA_S, BETA_BPS, ALPHA_S * BETA_BPS)
        intervals = (fit.latency_interval_s, fit.bandwidth_interval_Bps, fit.half_bandwidth_interval_bytes)
        held += [low <= truth <= high for truth, (low, high) in zip(truths, intervals, strict=True)]
    assert all(0.91 <= share <= 0.98 for share in held / 400)


def test_it_does_not_mind_the_order_of_the_sizes():
    times = line() * np.linspace(0.9, 1.1, len(SIZES))
    assert fit_transfer(SIZES[::-1], times[::-1]).latency_s == pytest.approx(fit_transfer(SIZES, times).latency_s)


def test_it_gives_a_wide_interval_for_a_bandwidth_that_the_data_hardly_bound():
    fit = fit_transfer([0, 1, 2, 3], [1.0, 1.1, 0.95, 1.15])
    low, high = fit.bandwidth_interval_Bps
    assert 0 < low < fit.bandwidth_Bps < high
    assert high > 100 * low


@pytest.mark.parametrize(
    ("sizes", "times", "words"),
    [
        ([1, 2], [1.0, 2.0], "3 different"),
        ([1, 1, 2], [1.0, 1.1, 2.0], "3 different"),
        ([1, 2, 3], [1.0, 2.0], "one time for each size"),
        ([1, 2, 3], [1.0, 0.0, 2.0], "above 0"),
        ([1, 2, 3], [1.0, math.nan, 2.0], "finite"),
        ([-1, 2, 3], [1.0, 1.5, 2.0], "finite"),
        ([1, 2, 3], [3.0, 2.0, 1.0], "do not grow"),
    ],
)
def test_it_refuses_times_without_a_line(sizes, times, words):
    with pytest.raises(ValueError, match=words):
        fit_transfer(sizes, times)
