"""Samples of the TCP pass, grouped by series, and their quantiles (Hyndman-Fan type 7, as numpy's default)."""

from __future__ import annotations

from typing import Any

import numpy as np

from analysis.kernels import jit
from analysis.kernels.raw import signed
from analysis.kernels.tcp_state import IN_FLIGHT_BYTES, SERIES


@jit
def group_samples(samples: Any, series: int) -> tuple[Any, Any]:
    """Values (N,) int64 ordered by series, and where each series begins, (series + 1,) int64."""
    begins = np.zeros(series + 1, np.int64)
    for i in range(len(samples)):
        begins[samples[i].series + 1] += 1
    for k in range(series):
        begins[k + 1] += begins[k]
    at = begins.copy()
    values = np.empty(len(samples), np.int64)
    for i in range(len(samples)):
        place = at[samples[i].series]
        values[place] = samples[i].value
        at[samples[i].series] = place + 1
    return values, begins


@jit
def _select(values: Any, low: int, high: int, rank: int) -> int:
    """Value at index ``rank`` of sorted values[low:high], which is reordered so that nothing left of it is larger."""
    high -= 1
    while low < high:
        pivot = values[(low + high) // 2]
        i = low
        j = high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                held = values[i]
                values[i] = values[j]
                values[j] = held
                i += 1
                j -= 1
        if rank <= j:
            high = j
        elif rank >= i:
            low = i
        else:
            break
    return signed(values[rank])


@jit
def quantile(values: Any, low: int, high: int, settled: int, probability: float) -> float:
    """Type 7 quantile of values[low:high] (at least one value), which is reordered.

    Everything left of index ``settled`` (``low`` when nothing is known) must be no larger than everything from there on, and
    the quantile not left of it.
    """
    position = probability * (high - low - 1)
    rank = low + int(np.floor(position))
    below = _select(values, settled, high, rank)
    if position == np.floor(position):
        return float(below)
    above = values[rank + 1]
    for i in range(rank + 2, high):
        above = min(above, values[i])
    return float(below + (position - np.floor(position)) * (above - below))


@jit
def describe_pairs(values: Any, begins: Any, out: Any) -> None:
    """Median, 95 % quantile and minimum of series 2k and 2k + 1 together, into out[k, :]; NaN for an empty pair.

    The median of IN_FLIGHT_BYTES, half of all samples, is nobody's metric: it is left out (NaN).
    """
    for k in range(len(out)):
        low = begins[2 * k]
        high = begins[2 * k + 2]
        out[k, :] = np.nan
        if low == high:
            continue
        middle = low
        if k % SERIES != IN_FLIGHT_BYTES:
            middle = low + (high - low - 1) // 2
            out[k, 0] = quantile(values, low, high, low, 0.5)
        out[k, 1] = quantile(values, low, high, middle, 0.95)
        if k % SERIES != IN_FLIGHT_BYTES:
            out[k, 2] = values[low : middle + 1].min()


@jit
def pool_pairs(values: Any, begins: Any, pairs: Any) -> Any:
    """The values of series 2k and 2k + 1 for every k of ``pairs``, one after the other; a new array."""
    size = 0
    for k in pairs:
        size += begins[2 * k + 2] - begins[2 * k]
    pooled = np.empty(size, np.int64)
    at = 0
    for k in pairs:
        for i in range(begins[2 * k], begins[2 * k + 2]):
            pooled[at] = values[i]
            at += 1
    return pooled


@jit
def median_and_p95(values: Any) -> tuple[float, float]:
    """Of at least one value; reorders them."""
    median = quantile(values, 0, len(values), 0, 0.5)
    return median, quantile(values, 0, len(values), (len(values) - 1) // 2, 0.95)


@jit
def p95(values: Any) -> float:
    """Of at least one value; reorders them."""
    return quantile(values, 0, len(values), 0, 0.95)
