"""Burstiness over time: index of dispersion, iteration period, Hurst exponent."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import scipy  # special is loaded when first used

from analysis.numbers import amount

_FEWEST_WINDOWS: Final = 20
"""Windows up to T/20: the variance of fewer numbers is meaningless."""
_MOST_BINS_FOR_LAGS: Final = 1 << 17
_FEWEST_BINS_FOR_LAGS: Final = 64
_LEAST_CORRELATION: Final = 0.1
"""Smaller correlations are no visible rhythm, even if they are significant."""
_NEARLY_STRONGEST: Final = 0.75
"""The period is the shortest lag among maxima with this share of the strongest."""
_FEWEST_SCALES: Final = 5

Counts = npt.NDArray[np.int64] | npt.NDArray[np.int32]
Values = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Bunching:
    """Metrics, reasons for absent ones, and ``details`` (idc, hurst)."""

    metrics: dict[str, float] = field(default_factory=dict)
    not_available: dict[str, str] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)


def bunching(counts: Counts, bin_ns: int) -> Bunching:
    """Compute the metrics from packets per ``bin_ns`` of a scope."""
    result = Bunching(details={"idc": index_of_dispersion(counts, bin_ns)})
    period_s, why_not = iteration_period(counts, bin_ns)
    if period_s is not None:
        result.metrics["iteration_period_s"] = period_s
        result.not_available["hurst"] = (
            f"a period of {amount(period_s, 's')} was found: periodic traffic has no self-similar tail to estimate"
        )
        return result
    result.not_available["iteration_period_s"] = why_not
    estimate, why_not = hurst(counts)
    if estimate is None:
        result.not_available["hurst"] = why_not
    else:
        result.metrics["hurst"] = estimate["estimate"]
        result.details["hurst"] = estimate
    return result


def index_of_dispersion(counts: Counts, bin_ns: int) -> dict[str, list[float]]:
    """Return Var N(w) / E N(w) for w = 1, 3, 10, 30 ... ms up to T/20 (Gusella 1991)."""
    windows, values = [], []
    narrower: dict[int, npt.NDArray[np.int64]] = {}
    for step in range(16):
        width_ns = (1, 3)[step % 2] * 10 ** (6 + step // 2)
        if width_ns % bin_ns:
            continue
        if len(counts) < _FEWEST_WINDOWS * (width_ns // bin_ns):
            break
        part_ns = width_ns // 3 if step % 2 else width_ns // 10
        part = narrower.get(part_ns)
        parts, per_window = (counts, width_ns // bin_ns) if part is None else (part, width_ns // part_ns)
        sums = narrower[width_ns] = _summed(parts, per_window)
        if sums.any():
            windows.append(width_ns / 1e9)
            values.append(float(sums.var(ddof=1) / sums.mean()))
    return {"window_s": windows, "idc": values}


def _summed(counts: Counts, per_window: int) -> npt.NDArray[np.int64]:
    """Sum windows of ``per_window`` counts, without an incomplete last one."""
    whole = len(counts) // per_window * per_window
    sums: npt.NDArray[np.int64] = counts[:whole].reshape(-1, per_window).sum(axis=1, dtype=np.int64)
    return sums


@dataclass(frozen=True, slots=True)
class _Peak:
    height: float
    lag: float
    """In the bins of its scale."""
    repeats: bool


def iteration_period(counts: Counts, bin_ns: int) -> tuple[float | None, str]:
    """Return (period in seconds, "") or (None, reason).

    The autocorrelation is also smoothed over 4, 16 and 64 bins, because jitter hides a rhythm from narrower bins; a smoother one must
    show it 20 % more clearly to replace a sharper one.
    """
    if len(counts) < _FEWEST_BINS_FOR_LAGS:
        return None, f"the capture is too short: fewer than {_FEWEST_BINS_FOR_LAGS} bins"
    per_bin = -(-len(counts) // _MOST_BINS_FOR_LAGS)
    binned = counts if per_bin == 1 else _summed(counts, per_bin)
    r = autocorrelation(binned)
    best = _Peak(0.0, 0.0, True)
    for width in (1, 4, 16, 64):
        if len(r) < 8 * width:
            break
        peak = _strongest_peak(_smoothed(r, width), len(binned) / width, width)
        if peak is not None and peak.height > 1.2 * best.height:
            best = peak
    if not best.height:
        return None, "no peak of the autocorrelation rises above noise"
    if not best.repeats:
        return None, "the strongest peak of the autocorrelation does not repeat"
    return best.lag * per_bin * bin_ns / 1e9, ""


def autocorrelation(counts: Counts) -> Values:
    """Return r(k) for k = 0 ... n/4 (biased), by the Wiener-Khinchin theorem."""
    lags = len(counts) // 4 + 1
    size = _transformed_size(len(counts) + lags)  # zeros behind the data keep the lags from wrapping around
    # scipy.fft takes 0.1 s to import, which every command would wait for.
    spectrum = np.fft.rfft(counts - counts.mean(), size)
    r: Values = np.fft.irfft(spectrum.real**2 + spectrum.imag**2, size)[:lags]
    return r / r[0] if r[0] > 0 else np.zeros(lags)


def _transformed_size(least: int) -> int:
    """Return the smallest fast size: a power of 2, times 1, 3, 5 or 15."""
    return min(factor << (-(-least // factor) - 1).bit_length() for factor in (1, 3, 5, 15))


def _smoothed(r: Values, width: int) -> Values:
    """Smooth r(k) with a triangle of half width ``width``."""
    if width == 1:
        return r
    once = np.concatenate([[0.0], np.cumsum(np.concatenate([r[width:0:-1], r, np.full(width, r[-1])]))])  # r(-k) = r(k)
    twice = np.concatenate([[0.0], np.cumsum(once[width:] - once[:-width])])
    smooth: Values = (twice[width + 1 :] - twice[1:-width])[: len(r)]
    return smooth / smooth[0] if smooth[0] > 0 else np.zeros(len(r))


def _strongest_peak(r: Values, bins: float, width: int) -> _Peak | None:
    """Return the strongest local maximum of r(k), if it exceeds noise.

    ``bins`` is the number of independent values, ``width`` the smoothed lags. A peak must exceed sqrt(2 ln(40 lags)) standard errors
    1/sqrt(n) (the largest of that many normal values stays below, 95 %), in height and over the lowest r before it. The period is the
    shortest lag of the nearly strongest maxima. It repeats if r at twice the lag is high, too.
    """
    threshold = max(_LEAST_CORRELATION, math.sqrt(2 * math.log(40 * len(r)) / bins))
    inner = r[1:-1]
    rises = (
        (inner > threshold) & (inner - np.minimum.accumulate(r)[1:-1] > threshold) & (np.arange(1, len(r) - 1) > width)
    )
    peaks = 1 + np.flatnonzero(rises & (inner > r[:-2]) & (inner >= r[2:]))
    if not len(peaks):
        return None
    lag = int(peaks[r[peaks] >= _NEARLY_STRONGEST * r[peaks].max()][0])
    around = r[2 * lag - lag // 4 - 1 : 2 * lag + lag // 4 + 2]
    left, top, right = (float(value) for value in r[lag - 1 : lag + 2])
    bend = left - 2 * top + right
    vertex = 0.5 * (left - right) / bend if bend < 0 else 0.0  # of the parabola through three points
    return _Peak(top, lag + vertex, not len(around) or float(around.max()) >= threshold / 2)


def hurst(counts: Counts) -> tuple[dict[str, Any] | None, str]:
    """Estimate the Hurst exponent H by variance-time (Leland et al. 1994).

    The variance of means over m bins falls as m^(2H-2). Returns ({"estimate", "low", "high", "scales"}, "") or (None, reason). The
    interval is that of the regression slope at 95 %; it is rather too narrow, because neighbouring scales share data.
    """
    scales, variances = [], []
    cumulated = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    m = 10
    while len(counts) // m >= _FEWEST_WINDOWS:
        means = np.diff(cumulated[::m]) / m
        variance = float(means.var(ddof=1))
        if variance > 0:
            scales.append(m)
            variances.append(variance)
        m = m * 3 // 2
    if len(scales) < _FEWEST_SCALES:
        return None, f"fewer than {_FEWEST_SCALES} time scales"
    x, y = np.log10(scales), np.log10(variances)
    dx = x - x.mean()
    slope = float(dx @ y / (dx @ dx))
    residual = y - y.mean() - slope * dx
    error = math.sqrt(float(residual @ residual) / (len(x) - 2) / float(dx @ dx))
    estimate, half = 1 + slope / 2, float(scipy.special.stdtrit(len(x) - 2, 0.975)) * error / 2
    return {"estimate": estimate, "low": estimate - half, "high": estimate + half, "scales": len(scales)}, ""
