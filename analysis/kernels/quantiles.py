"""Samples of the TCP pass, grouped by series, and their quantiles (Hyndman-Fan type 7, as numpy's default)."""

from __future__ import annotations

from typing import Any

import numpy as np

from analysis.kernels import jit
from analysis.kernels.raw import signed


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
    """Value of that rank in values[low:high], which is reordered so that nothing left of it is larger."""
    high -= 1
    rank += low
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
def quantile(values: Any, low: int, high: int, probability: float) -> float:
    """Type 7 quantile of values[low:high] (at least one value), which is reordered."""
    position = probability * (high - low - 1)
    rank = int(np.floor(position))
    below = _select(values, low, high, rank)
    if position == rank:
        return float(below)
    above = values[low + rank + 1]
    for i in range(low + rank + 2, high):
        above = min(above, values[i])
    return float(below + (position - rank) * (above - below))


@jit
def describe_pairs(values: Any, begins: Any, out: Any) -> None:
    """Median, 95 % quantile and minimum of series 2k and 2k + 1 together, into out[k, :]; NaN for an empty pair."""
    for k in range(len(out)):
        low = begins[2 * k]
        high = begins[2 * k + 2]
        if low == high:
            out[k, :] = np.nan
            continue
        out[k, 0] = quantile(values, low, high, 0.5)
        out[k, 1] = quantile(values, low, high, 0.95)
        least = values[low]
        for i in range(low, high):
            least = min(least, values[i])
        out[k, 2] = least
