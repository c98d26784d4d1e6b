"""Round trips, latencies and flight sizes of the TCP pass: log and quantiles."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from analysis.kernels import samples as kernel
from analysis.kernels import tcp_state as state
from analysis.kernels.tcp import thin_samples
from analysis.memory import reserved
from analysis.traffic.interarrival import sorted_quantile

_LEAST_ROOM: Final = 1 << 15
_SHORT: Final = 256
"""Values of a pair of series sorted by a kernel; NumPy sorts longer ones faster."""


class SampleLog:
    """At most ``limit`` samples; beyond it an even share by ordinal."""

    def __init__(self, limit: int, store: Any) -> None:
        self._limit = max(limit, state.SAMPLES_PER_PACKET)
        self._samples = reserved(self._limit, state.SAMPLE)
        store["samples"], store["sample_room"] = self._samples.ctypes.data, self._limit

    def make_room(self, store: Any) -> None:
        """Drop every other sample until ``store`` has enough room."""
        room = max(state.SAMPLES_PER_PACKET, min(_LEAST_ROOM, self._limit // 2))
        while store["samples_used"] + room > self._limit:
            store["draw_limit"] //= 2
            store["samples_used"] = thin_samples(self._samples[: store["samples_used"]], int(store["draw_limit"]))

    def grouped(
        self, store: Any, left_out: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return values by series (N,) and starts of series (series + 1,)."""
        samples = self._samples[: store["samples_used"]]
        begins = np.zeros(len(left_out) + 1, np.int64)
        kernel.count_series(samples, begins)
        begins[1:][left_out] = 0
        np.cumsum(begins, out=begins)
        values = np.empty(int(begins[-1]), np.int64)
        kernel.place_values(samples, begins.copy(), left_out, values)
        return values, begins


def quantiles_of_each(values: npt.NDArray[np.int64], begins: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return (P, 2) median and 95 % quantile of series 2k and 2k + 1 together.

    ``values`` and ``begins`` are those of ``SampleLog.grouped``; the values of a pair are sorted.
    """
    quantiles = np.full((len(begins) // 2, 2), np.nan)
    kernel.describe_short(values, begins, _SHORT, quantiles)
    for pair in np.flatnonzero(np.diff(begins[::2]) > _SHORT):
        quantiles[pair] = quantiles_of(values[begins[2 * pair] : begins[2 * pair + 2]])
    return quantiles


def quantiles_of(values: npt.NDArray[np.int64]) -> tuple[float, float]:
    """Return median and 95 % quantile, NaN without values; sorts them."""
    if not len(values):
        return math.nan, math.nan
    values.sort()
    return sorted_quantile(values, 0.5), sorted_quantile(values, 0.95)
