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

LONGEST_NARROW = (1 << 31) - 1
"""2.1 s."""


def alone_below(unit_ns: int) -> int:
    """Below so many ns no bin has room for two multiples of ``unit_ns``, and the histogram tells each gap exactly."""
    return int(min(1 << (MANTISSA_BITS + unit_ns.bit_length()), LONGEST_NARROW + 1))


Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]


@jit
def add_gaps(
    gaps: Int64, alone: int, histogram: Int64, signs: Int64, square_sum: Float64, narrow: Int32, wide: Int64
) -> tuple[int, int]:
    """Count every gap (ns) by its sign, positive ones in the histogram; sums keep the order, so no split changes them.

    A bin is the exponent and the first bits of the mantissa of the gap as an IEEE 754 double. Where there is room, negative gaps and
    those from ``alone`` (``alone_below``) on are copied: what fits 31 bits to ``narrow``, others to ``wide``; returns how many of each.
    """
    total = square_sum[0]
    keep = len(narrow) > 0
    narrows = wides = 0
    for gap in gaps:
        total += np.float64(gap) * np.float64(gap)
        if gap > 0:
            histogram[(np.float64(gap).view(np.int64) >> _SHIFT) - _BIAS] += 1
            signs[POSITIVE] += 1
        elif gap == 0:
            signs[ZERO] += 1
        else:
            signs[NEGATIVE] += 1
        if keep and (gap >= alone or gap < 0):
            if 0 <= gap <= LONGEST_NARROW:
                narrow[narrows] = gap
                narrows += 1
            else:
                wide[wides] = gap
                wides += 1
    square_sum[0] = total
    return narrows, wides


@jit
def place_gaps(gaps: Any, places: Int64, ordered: Any) -> None:
    """Write positive gaps into ``ordered``, each at the next place of its bin, and move that place on."""
    for gap in gaps:
        if gap > 0:
            bin_of = (np.float64(gap).view(np.int64) >> _SHIFT) - _BIAS
            ordered[places[bin_of]] = gap
            places[bin_of] += 1


def bins_of(gaps: Int64) -> Int64:
    """The bins of positive gaps."""
    return (gaps.astype(np.float64).view(np.int64) >> _SHIFT) - _BIAS


def bin_edges(bins: Int64) -> Float64:
    """Lower edges of ``bins`` in ns."""
    return ((bins + _BIAS) << _SHIFT).view(np.float64)


def alone_in(bins: Int64, unit_ns: int) -> Int64:
    """The only multiple of ``unit_ns`` in each of ``bins``, which lie below ``alone_below(unit_ns)`` and hold one."""
    return -(-np.ceil(bin_edges(bins)).astype(np.int64) // unit_ns) * unit_ns


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
