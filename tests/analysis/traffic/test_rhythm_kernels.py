"""The smoothed autocorrelation and its strongest peak are those of their definitions, written down plainly."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from analysis.kernels import rates

Floats = npt.NDArray[np.float64]


def correlation(lags: int, seed: int) -> Floats:
    """Falls, swings, and is noisy."""
    k = np.arange(lags)
    return np.exp(-k / 300) * np.cos(k / 11) + np.random.default_rng(seed).normal(0, 0.05, lags)


@pytest.mark.parametrize("width", [4, 16, 64])
def test_smoothing_is_a_triangle_over_both_sides(width: int) -> None:
    r = correlation(700, width)
    out = np.empty_like(r)
    rates.smooth(r, width, np.empty(len(r) + 2 * width + 1), out)
    both = np.concatenate([r[width - 1 : 0 : -1], r, np.repeat(r[-1], width - 1)])
    triangle = np.concatenate([np.arange(1, width + 1), np.arange(width - 1, 0, -1)])
    expected = np.convolve(both, triangle, "valid")
    assert out == pytest.approx(expected / expected[0], abs=1e-12)


def test_what_falls_to_nothing_is_smoothed_to_nothing() -> None:
    out = np.ones(100)
    rates.smooth(np.zeros(100), 4, np.empty(109), out)
    assert not out.any()


@pytest.mark.parametrize("seed", range(30))
def test_the_strongest_peak_is_found_as_defined(seed: int) -> None:
    r, threshold, width, share = correlation(500, seed), 0.3, seed % 5, 0.75
    candidates = [
        k
        for k in range(1, len(r) - 1)
        if r[k - 1] < r[k] >= r[k + 1] and r[k] > threshold and r[k] - r[: k + 1].min() > threshold and k > width
    ]
    highest = max((r[k] for k in candidates), default=0.0)
    expected = next((k for k in candidates if r[k] >= share * highest), -1)
    assert rates.strongest_peak(r, threshold, width, share) == expected


def test_noise_has_no_peak() -> None:
    assert rates.strongest_peak(np.random.default_rng(3).normal(0, 0.01, 400), 0.1, 1, 0.75) == -1
