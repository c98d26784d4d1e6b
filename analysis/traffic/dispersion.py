"""How packets bunch over time: index of dispersion, iteration period, Hurst exponent, from packets per bin."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from analysis.kernels import gaps as kernel
from analysis.kernels import rates
from analysis.numbers import amount

Counts = npt.NDArray[np.int64] | npt.NDArray[np.int32]
Values = npt.NDArray[np.float64]

_FEWEST_WINDOWS: Final = 20
"""Windows up to T/20: a variance of fewer numbers says nothing."""
_MOST_BINS_FOR_LAGS: Final = 1 << 17
_FEWEST_BINS_FOR_LAGS: Final = 64
_FEW_OTHERS: Final = 256
"""Bins that are taken away from an autocorrelation one by one: as long as a transform where each takes 2 us."""
_LEAST_CORRELATION: Final = 0.1
"""Correlations below this are no rhythm that a reader would see, however many bins make them significant."""
_NEARLY_STRONGEST: Final = 0.75
"""Of maxima with this share of the strongest the shortest lag is the period."""
_FEWEST_SCALES: Final = 5


@dataclass(frozen=True, slots=True)
class Bunching:
    """Metrics, why others are not available, and ``details`` (idc, hurst)."""

    metrics: dict[str, float] = field(default_factory=dict)
    not_available: dict[str, str] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)


def bunching(counts: Counts, bin_ns: int) -> Bunching:
    """Of packets per ``bin_ns``, from the bin of a scope's first packet to that of its last."""
    return _described(counts, bin_ns, _Rhythm.of(counts))


def bunching_of_both(counts: Counts, others: Counts, bin_ns: int) -> tuple[Bunching, Bunching]:
    """Of packets per bin, and of those that are not among ``others``, of the same bins; some are not.

    Where few bins hold others, the second autocorrelation follows from the first, which spares its transform.
    """
    rest = counts - others
    rest = rest[filled_part(rest)]
    whole = _Rhythm.of(counts)
    return _described(counts, bin_ns, whole), _described(rest, bin_ns, whole.without(others, rest))


def are_few(others: Counts) -> bool:
    """Whether ``bunching_of_both`` is worth while."""
    return int(np.count_nonzero(others)) <= _FEW_OTHERS


def filled_part(counts: Counts) -> slice:
    """From the first bin that is not empty to the last."""
    filled = counts != 0
    first, behind = int(filled.argmax()), len(filled) - int(filled[::-1].argmax())
    return slice(first, behind if filled[first] else first)


def _described(counts: Counts, bin_ns: int, rhythm: _Rhythm) -> Bunching:
    found = Bunching(details={"idc": index_of_dispersion(counts, bin_ns)})
    period_s, why_not = rhythm.period(bin_ns)
    if period_s is not None:
        found.metrics["iteration_period_s"] = period_s
        found.not_available["hurst"] = (
            f"a period of {amount(period_s, 's')} was found: periodic traffic has no self-similar tail to estimate"
        )
        return found
    found.not_available["iteration_period_s"] = why_not
    estimate, why_not = hurst(counts)
    if estimate is None:
        found.not_available["hurst"] = why_not
    else:
        found.metrics["hurst"] = estimate["estimate"]
        found.details["hurst"] = estimate
    return found


def index_of_dispersion(counts: Counts, bin_ns: int) -> dict[str, list[float]]:
    """Var N(w) / E N(w) for w = 1, 3, 10, 30 ... ms up to T/20 (Gusella 1991); {"window_s": [...], "idc": [...]}."""
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
        narrower[width_ns] = np.empty(len(parts) // per_window, np.int64)
        mean, variance = kernel.dispersion(parts, per_window, narrower[width_ns])
        if mean > 0:
            windows.append(width_ns / 1e9)
            values.append(variance / mean)
    return {"window_s": windows, "idc": values}


def _summed(counts: Counts, per_window: int) -> npt.NDArray[np.int64]:
    """Sums of ``per_window`` successive counts each; what does not fill a window at the end is left out."""
    sums = np.empty(len(counts) // per_window, np.int64)
    kernel.sum_windows(counts, per_window, sums)
    return sums


def autocorrelation(counts: Counts) -> Values:
    """r(k) of packets per bin for k = 0 ... n/4 (biased estimator), by fast Fourier transform (Wiener-Khinchin).

    Single precision: r is good to 1e-5, far below any lag's standard error.
    """
    return _normalised(_products(counts))


def _products(counts: Counts) -> Values:
    """Sums over i of (x_i - mean)(x_(i + k) - mean) for k = 0 ... n/4."""
    n = len(counts)
    lags = n // 4 + 1
    centred = (counts - counts.mean()).astype(np.float32)
    size = _fast_length(n + lags)  # zeros behind the data keep the lags that are wanted from wrapping around
    spectrum = np.fft.rfft(centred, size)
    return np.fft.irfft(spectrum.real**2 + spectrum.imag**2, size)[:lags].astype(np.float64)


def _of_mean(counts: Counts, lags: int) -> Values:
    """What sums of products have more than those of differences from the mean, for k = 0 ... lags - 1."""
    n, total = len(counts), int(counts.sum())
    ends = np.zeros(lags)
    np.cumsum(counts[: lags - 1] + counts[::-1][: lags - 1], out=ends[1:])
    mean = total / n
    return mean * (2 * total - ends) - (n - np.arange(lags)) * mean**2


def _normalised(products: Values) -> Values:
    return products / products[0] if products[0] > 0 else np.zeros(len(products))


def _fast_length(least: int) -> int:
    """The smallest product of 2, 3 and 5 from ``least`` on that is even: such transforms are fast."""
    best = 1 << (least - 1).bit_length()
    for threes_and_fives in (3, 5, 9, 15, 25, 27, 45, 75, 81, 125, 135, 225):
        twos = -(-least // threes_and_fives)
        best = min(best, threes_and_fives << max(twos - 1, 1).bit_length())
    return best


@dataclass(frozen=True, slots=True)
class _Peak:
    height: float
    lag: float
    """In the bins of its scale."""
    repeats: bool


def iteration_period(counts: Counts, bin_ns: int) -> tuple[float | None, str]:
    """(period in seconds, "") or (None, why not); how: see ``_Rhythm.period``."""
    return _Rhythm.of(counts).period(bin_ns)


@dataclass(frozen=True, slots=True)
class _Rhythm:
    """The autocorrelation of packets per ``per_bin`` bins."""

    binned: Counts
    per_bin: int
    products: Values
    """As ``_products`` gives them; empty where there are too few bins."""

    @classmethod
    def of(cls, counts: Counts) -> _Rhythm:
        """Of packets per bin, as many of which become one that a transform takes little time."""
        per_bin = -(-len(counts) // _MOST_BINS_FOR_LAGS)
        binned = counts if per_bin == 1 else _summed(counts, max(per_bin, 1))
        return cls(binned, per_bin, _products(binned) if len(counts) >= _FEWEST_BINS_FOR_LAGS else np.zeros(0))

    def without(self, others: Counts, rest: Counts) -> _Rhythm:
        """That of ``rest``, the packets that are not among ``others``, which has the bins that this one was made of."""
        binned = others if self.per_bin == 1 else _summed(others, self.per_bin)
        places = np.flatnonzero(binned)
        if (
            not are_few(binned)
            or self.per_bin != -(-len(rest) // _MOST_BINS_FOR_LAGS)
            or len(rest) < _FEWEST_BINS_FOR_LAGS
            or 2 * int(binned.sum()) * int(self.binned.max()) >= 1 << 31
        ):
            return _Rhythm.of(rest)
        # sum (a - d)(a' - d') = sum a a' - sum d a' - sum (a - d) d', of all a, others d, and both k bins later
        left = self.binned - binned
        taken = np.zeros(len(self.products), np.int32)
        ahead, backwards = np.asarray(self.binned, np.int32), np.array(left[::-1], np.int32)
        rates.add_products(taken, ahead, backwards, places, binned[places].astype(np.int32))
        left = left[filled_part(left)]
        lags = len(left) // 4 + 1
        products = self.products[:lags] + _of_mean(self.binned, lags) - taken[:lags]
        return _Rhythm(left, self.per_bin, products - _of_mean(left, lags))

    def period(self, bin_ns: int) -> tuple[float | None, str]:
        """(period in seconds, "") or (None, why not); ``bin_ns`` is that of the counts.

        The autocorrelation is looked at sharply and smoothed over 4, 16 and 64 bins, because jitter hides a rhythm from bins
        narrower than itself; a smoother one must show it a fifth more clearly than a sharper one to be believed instead.
        """
        if not len(self.products):
            return None, f"the capture is too short: fewer than {_FEWEST_BINS_FOR_LAGS} bins"
        r = _normalised(self.products)
        best = _Peak(0.0, 0.0, True)
        for width in (1, 4, 16, 64):
            if len(r) < 8 * width:
                break
            peak = _strongest_peak(_smoothed(r, width), len(self.binned) / width, width)
            if peak is not None and peak.height > 1.2 * best.height:
                best = peak
        if not best.height:
            return None, "no peak of the autocorrelation rises above noise"
        if not best.repeats:
            return None, "the strongest peak of the autocorrelation does not repeat"
        return best.lag * self.per_bin * bin_ns / 1e9, ""


def _smoothed(r: npt.NDArray[np.float64], width: int) -> npt.NDArray[np.float64]:
    """The autocorrelation of sums over ``width`` bins, sliding: r under a triangle of that half width, for the same lags."""
    if width == 1:
        return r
    smooth = np.empty_like(r)
    rates.smooth(r, width, np.empty(len(r) + 2 * width + 1), smooth)
    return smooth


def _strongest_peak(r: npt.NDArray[np.float64], bins: float, width: int) -> _Peak | None:
    """The strongest local maximum of r(k) behind its first minimum, if it rises above noise.

    ``bins`` is the number of independent values, ``width`` the lags that smoothing made alike. A peak must exceed
    sqrt(2 ln(40 lags)) standard errors 1/sqrt(n) (the largest of that many normal values stays below, 95 %),
    in height and over the lowest r before it. Of maxima nearly as high as the strongest the shortest lag is the period. It
    repeats when r at twice the lag is high, too.
    """
    threshold = max(_LEAST_CORRELATION, math.sqrt(2 * math.log(40 * len(r)) / bins))
    lag = rates.strongest_peak(r, threshold, width, _NEARLY_STRONGEST)
    if lag < 0:
        return None
    around = r[2 * lag - lag // 4 - 1 : 2 * lag + lag // 4 + 2]
    left, top, right = (float(value) for value in r[lag - 1 : lag + 2])
    bend = left - 2 * top + right
    vertex = 0.5 * (left - right) / bend if bend < 0 else 0.0  # of the parabola through three points
    return _Peak(top, lag + vertex, not len(around) or float(around.max()) >= threshold / 2)


def hurst(counts: Counts) -> tuple[dict[str, Any] | None, str]:
    """Variance-time estimate (Leland et al. 1994): Var of means over m bins falls as m^(2H-2).

    ({"estimate", "low", "high", "scales"}, "") or (None, why not). The interval is that of the regression slope at 95 %;
    neighbouring scales share data, so it is too narrow rather than too wide.
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
    estimate, half = 1 + slope / 2, _student_95(len(x) - 2) * error / 2
    return {"estimate": estimate, "low": estimate - half, "high": estimate + half, "scales": len(scales)}, ""


def _student_95(degrees: int) -> float:
    """97.5 % quantile of Student's t (Abramowitz and Stegun 26.7.5, third order; exact to 1 % from 3 degrees on)."""
    z = 1.959963985
    v = float(degrees)
    return (
        z
        + (z**3 + z) / (4 * v)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * v**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * v**3)
    )
