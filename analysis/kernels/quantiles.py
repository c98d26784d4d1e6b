"""Samples of the TCP pass, grouped by series, and their quantiles (Hyndman-Fan type 7, as numpy's default).

A quantile is found without sorting: group the values by the leading bits of their size once, then look only into the bucket that
holds the wanted rank. Selecting in place among all values took four times as long as counting them, sorting them three times;
and counting them again for each quantity of each scope took most of the time of what is told of connections.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from analysis.kernels import jit
from analysis.kernels.raw import signed
from analysis.kernels.tcp_state import IN_FLIGHT_BYTES, SERIES

_MANTISSA = 47  # a float64 shifted right by this keeps its exponent and five bits of its fraction
_SMALLEST = (1023 << 5) - 1  # bucket 0 holds 0 (and what is below), bucket 1 begins at 1
_BUCKETS = (1087 << 5) - _SMALLEST  # up to 2**63
_FEW = 256
"""So few values are selected among sooner than they are grouped."""


@jit
def count_series(samples: Any, following: Any) -> None:
    """Add 1 to ``following[series + 1]`` for every sample."""
    for i in range(len(samples)):
        following[samples[i].series + 1] += 1


@jit
def renumber_series(samples: Any, numbers: Any) -> None:
    """Series k becomes ``numbers[k]``."""
    for i in range(len(samples)):
        samples[i].series = numbers[samples[i].series]


@jit
def place_values(samples: Any, places: Any, left_out: Any, values: Any) -> None:
    """Write every value at its series' next place, and move that place on, but for the series ``left_out``."""
    for i in range(len(samples)):
        series = samples[i].series
        if not left_out[series]:
            values[places[series]] = samples[i].value
            places[series] += 1


@jit
def _bucket(value: int) -> int:
    """Grows with ``value``; 32 buckets for every doubling."""
    return max(signed(np.float64(value).view(np.int64) >> _MANTISSA) - _SMALLEST, 0)


@jit
def group_pairs(values: Any, begins: Any) -> None:
    """Order the values of series 2k and 2k + 1 together by bucket, for every k with more than a few; `describe` relies on it."""
    counts = np.empty((2, _BUCKETS), np.int64)
    pairs = len(begins) // 2
    most = 0
    for k in range(pairs):
        most = max(most, begins[2 * k + 2] - begins[2 * k])
    scratch, buckets = np.empty(most, np.int64), np.empty(most, np.uint16)
    for k in range(pairs):
        if begins[2 * k + 2] - begins[2 * k] > _FEW:
            _group(values[begins[2 * k] : begins[2 * k + 2]], counts, scratch, buckets)


@jit
def _group(values: Any, counts: Any, scratch: Any, buckets: Any) -> None:
    """Each half is counted by itself: many successive values fall into one bucket, and an addition waits for the one before."""
    counts[:] = 0
    half = len(values) // 2
    for i in range(half):
        one, other = _bucket(values[i]), _bucket(values[half + i])
        buckets[i], buckets[half + i] = one, other
        counts[0, one] += 1
        counts[1, other] += 1
    for i in range(2 * half, len(values)):
        buckets[i] = _bucket(values[i])
        counts[1, buckets[i]] += 1
    place = 0
    for bucket in range(_BUCKETS):
        for part in range(2):
            size = counts[part, bucket]
            counts[part, bucket] = place
            place += size
    for i in range(half):
        one, other = buckets[i], buckets[half + i]
        scratch[counts[0, one]] = values[i]
        counts[0, one] += 1
        scratch[counts[1, other]] = values[half + i]
        counts[1, other] += 1
    for i in range(2 * half, len(values)):
        scratch[counts[1, buckets[i]]] = values[i]
        counts[1, buckets[i]] += 1
    values[:] = scratch[: len(values)]


@jit
def _first_from(values: Any, low: int, high: int, bucket: int) -> int:
    """The first index in values[low:high], ordered by bucket, with ``bucket`` or one behind it; ``high`` without any."""
    while low < high:
        middle = (low + high) // 2
        if _bucket(values[middle]) < bucket:
            low = middle + 1
        else:
            high = middle
    return low


@jit
def _count(values: Any, begins: Any, pairs: Any, counts: Any) -> None:
    counts[:] = 0
    for k in pairs:
        i = begins[2 * k]
        behind = begins[2 * k + 2]
        if behind - i <= _FEW:
            for j in range(i, behind):
                counts[_bucket(values[j])] += 1
            continue
        while i < behind:
            bucket = _bucket(values[i])
            following = _first_from(values, i + 1, behind, bucket + 1)
            counts[bucket] += following - i
            i = following


@jit
def _collect(values: Any, begins: Any, pairs: Any, bucket: int, scratch: Any) -> int:
    """Copy the values of one bucket (-1: of all) to ``scratch``; returns how many they are."""
    count = 0
    for k in pairs:
        first = begins[2 * k]
        behind = begins[2 * k + 2]
        if bucket >= 0 and behind - first > _FEW:
            first = _first_from(values, first, behind, bucket)
            behind = _first_from(values, first, behind, bucket + 1)
        for i in range(first, behind):
            scratch[count] = values[i]
            count += bucket < 0 or _bucket(values[i]) == bucket
    return count


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
def _values_at(
    values: Any, begins: Any, pairs: Any, size: int, ranks: Any, out: Any, counts: Any, scratch: Any
) -> None:
    """The values at ``ranks`` (ascending unless there are few) of all ``size`` values of the pairs, as floats into ``out``."""
    if size <= _FEW:
        count = _collect(values, begins, pairs, -1, scratch)
        for j in range(len(ranks)):
            out[j] = _select(scratch, 0, count, ranks[j])
        return
    _count(values, begins, pairs, counts)
    bucket = -1
    before = 0  # values in lower buckets
    through = 0  # and in this one
    count = 0
    for j in range(len(ranks)):
        if ranks[j] >= through:
            while ranks[j] >= through:
                bucket += 1
                before = through
                through += counts[bucket]
            count = _collect(values, begins, pairs, bucket, scratch)
        out[j] = _select(scratch, 0, count, ranks[j] - before)


@jit
def describe(values: Any, begins: Any, pairs: Any, with_median: bool, counts: Any, scratch: Any) -> tuple[float, float]:
    """Median (NaN unless asked for) and 95 % quantile of series 2k and 2k + 1, grouped before, for all k of ``pairs`` together.

    ``counts`` are buckets to work with, ``scratch`` has room for all these values and one more. NaN without values.
    """
    size = 0
    for k in pairs:
        size += begins[2 * k + 2] - begins[2 * k]
    if size == 0:
        return np.nan, np.nan
    positions = np.array([0.5, 0.95]) * (size - 1)
    ranks = np.empty(4, np.int64)
    for j in range(2):
        ranks[2 * j] = int(np.floor(positions[j]))
        ranks[2 * j + 1] = min(ranks[2 * j] + 1, size - 1)
    picked = np.full(4, np.nan)
    first = 0 if with_median else 2
    _values_at(values, begins, pairs, size, ranks[first:], picked[first:], counts, scratch)
    median = picked[0] + (positions[0] - ranks[0]) * (picked[1] - picked[0])
    return median, picked[2] + (positions[1] - ranks[2]) * (picked[3] - picked[2])


@jit
def describe_each(values: Any, begins: Any, out: Any) -> None:
    """Median and 95 % quantile of series 2k and 2k + 1 together, grouped before, into out[k, :], for every k.

    The median of IN_FLIGHT_BYTES, half of all samples, is nobody's metric: it is left out (NaN).
    """
    counts = np.empty(_BUCKETS, np.int64)
    pair = np.empty(1, np.int64)
    scratch = np.empty(len(values) + 1, np.int64)
    for k in range(len(out)):
        pair[0] = k
        out[k, 0], out[k, 1] = describe(values, begins, pair, k % SERIES != IN_FLIGHT_BYTES, counts, scratch)


@jit
def describe_all(values: Any, begins: Any, pairs: Any, with_median: bool) -> tuple[float, float]:
    """``describe`` with its own room to work."""
    counts = np.empty(_BUCKETS, np.int64)
    return describe(values, begins, pairs, with_median, counts, np.empty(len(values) + 1, np.int64))


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
