"""The line of message transfer times, t = alpha + n / beta: latency, bandwidth and half-bandwidth size.

Source: R. W. Hockney, "The communication challenge for MPP", Parallel Computing 20 (1994).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

MIN_SIZES: Final = 3
"""Two points lie on a line whatever they are; an interval needs one more."""
MAX_ROUNDS: Final = 100

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class TransferFit:
    """A fitted line with intervals of ``confidence``; an interval's end is infinite where the data leave it open."""

    latency_s: float
    """alpha: time of a message of no length. May be negative when only long messages were measured."""
    latency_interval_s: Interval
    bandwidth_Bps: float  # noqa: N815 (the unit's spelling: B is byte)
    """beta: rate of an infinitely long message, in bytes per second."""
    bandwidth_interval_Bps: Interval  # noqa: N815
    half_bandwidth_bytes: float
    """n_1/2 = alpha x beta: the message size that reaches half of beta."""
    half_bandwidth_interval_bytes: Interval
    residual_share: float
    """Root mean square of (t - fit) / fit, with the degrees of freedom."""
    confidence: float
    points: int


def fit_transfer(sizes_bytes: Sequence[float], times_s: Sequence[float], *, confidence: float = 0.95) -> TransferFit:
    """Fit t = alpha + n / beta to transfer times (s) of message sizes (bytes), by least squares of the relative errors.

    Times span orders of magnitude and err by a share of themselves, so absolute errors would let the longest message alone decide.
    Raise ValueError with fewer than three different sizes, times that are not positive, or times that do not grow with the size.
    """
    n, t = np.asarray(sizes_bytes, dtype=float), np.asarray(times_s, dtype=float)
    if n.shape != t.shape or n.ndim != 1:
        raise ValueError("needs one time for each size")
    if np.unique(n).size < MIN_SIZES:
        raise ValueError(f"needs at least {MIN_SIZES} different message sizes")
    if not np.isfinite(t).all() or (t <= 0).any() or not np.isfinite(n).all() or (n < 0).any():
        raise ValueError("sizes and times must be finite, times above 0")
    (alpha, slope), covariance, spread = _relative_least_squares(n, t)
    if slope <= 0:
        raise ValueError("the times do not grow with the message size")
    quantile = float(stats.t.ppf((1 + confidence) / 2, n.size - 2))
    half_width = [quantile * math.sqrt(variance) for variance in np.diag(covariance)]
    return TransferFit(
        latency_s=alpha,
        latency_interval_s=(alpha - half_width[0], alpha + half_width[0]),
        bandwidth_Bps=1 / slope,
        bandwidth_interval_Bps=_reciprocal(slope - half_width[1], slope + half_width[1]),
        half_bandwidth_bytes=alpha / slope,
        half_bandwidth_interval_bytes=_ratio_interval(alpha, slope, covariance, quantile),
        residual_share=spread,
        confidence=confidence,
        points=n.size,
    )


def _relative_least_squares(
    n: NDArray[np.float64], t: NDArray[np.float64]
) -> tuple[tuple[float, float], NDArray[np.float64], float]:
    """Return (alpha, slope), their covariance and the relative residual spread."""
    # Errors are taken relative to the line, found by repeating. Relative to the measured times, a time that is too long
    # by chance would count less than one that is too short, and the whole line would lie too low.
    reference = t
    for _ in range(MAX_ROUNDS):
        (alpha, slope), inverse = _weighted(n, t, 1 / reference)
        line = np.maximum(alpha + slope * n, t.min() / 10)
        settled = np.allclose(line, reference, rtol=1e-9, atol=0)
        reference = line
        if settled:
            break
    residuals = (t - alpha - slope * n) / reference
    variance = float(residuals @ residuals) / (n.size - 2)
    return (alpha, slope), variance * inverse @ inverse.T, math.sqrt(variance)


def _weighted(
    n: NDArray[np.float64], t: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[tuple[float, float], NDArray[np.float64]]:
    """Return (alpha, slope) of weighted least squares and the inverse triangular factor, whose square is their covariance."""
    # Columns are scaled to one: sizes near 1e7 beside times near 1e-5 would make the normal matrix useless.
    design = np.column_stack((weights, n * weights))
    scale = np.sqrt((design**2).sum(axis=0))
    q, r = np.linalg.qr(design / scale)
    alpha, slope = np.linalg.solve(r, q.T @ (t * weights)) / scale
    return (float(alpha), float(slope)), np.linalg.inv(r) / scale[:, None]


def _reciprocal(low: float, high: float) -> Interval:
    return float(1 / high), float(1 / low) if low > 0 else math.inf


def _ratio_interval(top: float, bottom: float, covariance: NDArray[np.float64], quantile: float) -> Interval:
    """Return the interval of top / bottom by Fieller's theorem (1954); open when the bottom may be 0."""
    v11, v12, v22 = covariance[0, 0], covariance[0, 1], covariance[1, 1]
    square = quantile**2
    a, b, c = bottom**2 - square * v22, top * bottom - square * v12, top**2 - square * v11
    if a <= 0:
        return -math.inf, math.inf
    root = math.sqrt(max(0.0, b * b - a * c))
    return float((b - root) / a), float((b + root) / a)
