"""Message transfer times, t = alpha + n / beta: latency, bandwidth, half size.

Source: R. W. Hockney, "The communication challenge for MPP", Parallel Computing 20 (1994).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import scipy  # optimize and special are loaded when first used; stdtrit is t.ppf without its checks
from numpy.typing import NDArray

MIN_SIZES: Final = 3
"""Two points always fit a line; an interval needs one more."""
LEAST_GROWTH: Final = 0.01
"""A line that grows by less over all sizes, relative to its start, says nothing of a bandwidth."""

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class TransferFit:
    """A fitted line with intervals of ``confidence``; an open end is infinite."""

    latency_s: float
    """alpha: time of a message of no length."""
    latency_interval_s: Interval
    bandwidth_Bps: float  # noqa: N815 (the unit's spelling: B is byte)
    """beta: rate of an infinitely long message, in bytes per second."""
    bandwidth_interval_Bps: Interval  # noqa: N815
    half_bandwidth_bytes: float
    """n_1/2 = alpha x beta: the message size that reaches half of beta."""
    half_bandwidth_interval_bytes: Interval
    residual_share: float
    """Root mean square of log(t / fit), with the degrees of freedom: for small ones the relative error."""
    confidence: float
    points: int


def fit_transfer(sizes_bytes: Sequence[float], times_s: Sequence[float], *, confidence: float = 0.95) -> TransferFit:
    """Fit t = alpha + n / beta, both positive, to transfer times (s) of sizes (bytes).

    The squares of log(t / fit) are made least: times span orders of magnitude, err by a factor, and never fall below what the network
    needs. With absolute errors the longest message alone would decide; with errors relative to the measured times, a chance delay
    would count less than good luck; relative to the line, a few late short messages can turn its slope negative.
    Raise ValueError with fewer than three different sizes, times that are not positive, or times that do not grow with the size.
    """
    n, t = np.asarray(sizes_bytes, dtype=float), np.asarray(times_s, dtype=float)
    if n.shape != t.shape or n.ndim != 1:
        raise ValueError("needs one time for each size")
    if np.unique(n).size < MIN_SIZES:
        raise ValueError(f"needs at least {MIN_SIZES} different message sizes")
    if not np.isfinite(t).all() or (t <= 0).any() or not np.isfinite(n).all() or (n < 0).any():
        raise ValueError("sizes and times must be finite, times above 0")
    (log_alpha, log_slope), jacobian, residuals = _least_log_squares(n, t)
    alpha, slope = math.exp(log_alpha), math.exp(log_slope)
    if slope * n.max() < LEAST_GROWTH * alpha:
        raise ValueError("the times do not grow with the message size")
    variance = float(residuals @ residuals) / (n.size - 2)
    covariance = variance * np.linalg.pinv(jacobian.T @ jacobian)
    quantile = float(scipy.special.stdtrit(n.size - 2, (1 + confidence) / 2))

    def interval(center: float, of_alpha: int, of_slope: int) -> Interval:
        direction = np.array((of_alpha, of_slope))
        half_width = quantile * math.sqrt(max(0.0, float(direction @ covariance @ direction)))
        return _exp(center - half_width), _exp(center + half_width)

    return TransferFit(
        latency_s=alpha,
        latency_interval_s=interval(log_alpha, 1, 0),
        bandwidth_Bps=1 / slope,
        bandwidth_interval_Bps=interval(-log_slope, 0, -1),
        half_bandwidth_bytes=alpha / slope,
        half_bandwidth_interval_bytes=interval(log_alpha - log_slope, 1, -1),
        residual_share=math.sqrt(variance),
        confidence=confidence,
        points=n.size,
    )


def _least_log_squares(
    n: NDArray[np.float64], t: NDArray[np.float64]
) -> tuple[tuple[float, float], NDArray[np.float64], NDArray[np.float64]]:
    """Return (log alpha, log slope), the Jacobian and the residuals log(t / fit)."""

    def terms(logs: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        alpha, slope = np.exp(logs)
        return np.full_like(n, alpha), slope * n

    def residuals(logs: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.log(t) - np.log(sum(terms(logs))))

    def jacobian(logs: NDArray[np.float64]) -> NDArray[np.float64]:
        parts = np.column_stack(terms(logs))
        return np.asarray(-parts / parts.sum(axis=1, keepdims=True))

    longest = int(np.argmax(n))
    start = np.log((np.min(t), t[longest] / n[longest]))
    fit = scipy.optimize.least_squares(
        residuals, start, jacobian, bounds=(start - 40, start + 40), xtol=1e-12, ftol=1e-12
    )
    return (float(fit.x[0]), float(fit.x[1])), -fit.jac, fit.fun


def _exp(power: float) -> float:
    return math.exp(power) if power < 700 else math.inf
