"""Inter-arrival gaps into a histogram with bins of equal relative width."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.kernels import jit

MANTISSA_BITS = 10
"""1024 bins per power of two: gaps are grouped with others that differ by less than 0.1 %, below 2048 ns not at all."""
BINS = 63 << MANTISSA_BITS

_SHIFT = 52 - MANTISSA_BITS
_BIAS = 1023 << MANTISSA_BITS

# Slots of the moments
POSITIVE, ZERO, NEGATIVE = range(3)

_AT_ONCE = 256

Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]


@jit
def add_gaps(gaps: Int64, histogram: Int64, signs: Int64, square_sum: Float64) -> None:
    """Count every gap (ns) by its sign, positive ones in the histogram; sums keep the order, so no split changes them.

    A bin is the exponent and the first bits of the mantissa of the gap as an IEEE 754 double.
    """
    total = square_sum[0]
    for gap in gaps:
        total += np.float64(gap) * np.float64(gap)
        if gap > 0:
            histogram[(np.float64(gap).view(np.int64) >> _SHIFT) - _BIAS] += 1
            signs[POSITIVE] += 1
        elif gap == 0:
            signs[ZERO] += 1
        else:
            signs[NEGATIVE] += 1
    square_sum[0] = total


def bin_edges(bins: Int64) -> Float64:
    """Lower edges of ``bins`` in ns."""
    return ((bins + _BIAS) << _SHIFT).view(np.float64)


@jit
def sum_windows(counts: Any, per_window: int, sums: Int64) -> None:
    """Sums of ``per_window`` successive counts each, as many as ``sums`` has room for."""
    for window in range(len(sums)):
        total = 0
        for k in range(window * per_window, (window + 1) * per_window):
            total += counts[k]
        sums[window] = total


@jit
def dispersion(counts: Any, per_window: int, sums: Int64) -> tuple[float, float]:
    """(mean, variance without bias) of sums of ``per_window`` successive counts, of which ``sums`` are made, two at least."""
    sum_windows(counts, per_window, sums)
    windows = len(sums)
    total = 0
    for k in range(windows):
        total += sums[k]
    mean = total / windows
    squares = 0.0
    for first in range(0, windows, _AT_ONCE):  # few small numbers are added to a large one
        some = 0.0
        for k in range(first, min(first + _AT_ONCE, windows)):
            some += (sums[k] - mean) ** 2
        squares += some
    return mean, squares / (windows - 1)
