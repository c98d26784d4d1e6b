"""The smoothed autocorrelation and its peak equal plain definitions."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

from analysis.traffic.dispersion import _smoothed, _strongest_peak

Floats = npt.NDArray[np.float64]


def correlation(lags: int, seed: int) -> Floats:
    """Falls, swings, and is noisy."""
    k = np.arange(lags)
    return np.exp(-k / 300) * np.cos(k / 11) + np.random.default_rng(seed).normal(0, 0.05, lags)


@pytest.mark.parametrize("width", [4, 16, 64])
def test_smoothing_is_a_triangle_over_both_sides(width: int) -> None:
    r = correlation(700, width)
    both = np.concatenate([r[width - 1 : 0 : -1], r, np.repeat(r[-1], width - 1)])
    triangle = np.concatenate([np.arange(1, width + 1), np.arange(width - 1, 0, -1)])
    expected = np.convolve(both, triangle, "valid")
    assert _smoothed(r, width) == pytest.approx(expected / expected[0], abs=1e-12)
    assert not _smoothed(np.zeros(100), 4).any()


@pytest.mark.parametrize("seed", range(30))
def test_the_strongest_peak_is_found_as_defined(seed: int) -> None:
    r, bins, width, share = correlation(500, seed), 220.0, seed % 5, 0.75
    threshold = math.sqrt(2 * math.log(40 * len(r)) / bins)
    candidates = [
        k
        for k in range(1, len(r) - 1)
        if r[k - 1] < r[k] >= r[k + 1] and r[k] > threshold and r[k] - r[: k + 1].min() > threshold and k > width
    ]
    highest = max((r[k] for k in candidates), default=0.0)
    expected = next((k for k in candidates if r[k] >= share * highest), None)
    peak = _strongest_peak(r, bins, width)
    assert (peak and round(peak.lag)) == expected
    assert _strongest_peak(np.random.default_rng(3).normal(0, 0.01, 400), bins, 1) is None
