"""Samples of the TCP pass, grouped by series, and quantiles of short series."""

from __future__ import annotations

from typing import Any

import numpy as np

from analysis.kernels import jit


@jit
def count_series(samples: Any, following: Any) -> None:
    """Add 1 to ``following[series + 1]`` for every sample."""
    for i in range(len(samples)):
        following[samples[i].series + 1] += 1


@jit
def place_values(samples: Any, places: Any, left_out: Any, values: Any) -> None:
    """Write values at the next position of their series, except ``left_out``."""
    for i in range(len(samples)):
        series = samples[i].series
        if not left_out[series]:
            values[places[series]] = samples[i].value
            places[series] += 1


@jit
def describe_short(values: Any, begins: Any, most: int, out: Any) -> None:
    """Write median and 95 % quantile (type 7) of series 2k and 2k + 1 to out[k, :].

    Only pairs with 1 to ``most`` values count; these are sorted in place.
    """
    for k in range(len(out)):
        some = values[begins[2 * k] : begins[2 * k + 2]]
        if 0 < len(some) <= most:
            some.sort()
            last = len(some) - 1
            for column in range(2):
                position = (0.95 if column else 0.5) * last
                low = int(np.floor(position))
                above = some[min(low + 1, last)]
                out[k, column] = some[low] + (position - low) * (above - some[low])
