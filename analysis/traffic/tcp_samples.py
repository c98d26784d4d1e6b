"""Where the TCP pass writes round trips, latencies and flight sizes: blocks, so that growing copies nothing.

One array that doubles cost 25 of the pass's 59 ns per packet, nearly all of it for touching fresh memory again and again.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from analysis.kernels import samples as kernel
from analysis.kernels import tcp_state as state
from analysis.kernels.tcp import thin_samples
from analysis.traffic.interarrival import sorted_quantile

BLOCK: Final = 1 << 15
_FIRST_BLOCK: Final = 1 << 10
_SHORT: Final = 256
"""Values of a pair of series that a kernel sorts; NumPy sorts longer ones faster."""
_RAW: Final = np.dtype((np.void, state.SAMPLE.itemsize))
"""Samples are copied as bytes: field by field takes 17 times as long."""


class SampleLog:
    """At most ``limit`` samples; beyond it an even share of them, chosen by ordinal: half, a quarter, ..."""

    def __init__(self, limit: int, store: Any) -> None:
        self._limit = max(limit, state.SAMPLES_PER_PACKET)
        self._full: list[npt.NDArray[np.void]] = []
        self._block = np.empty(0, state.SAMPLE)
        self._open(min(_FIRST_BLOCK, self._limit), store)

    def make_room(self, store: Any) -> None:
        """After this the record ``store`` (dtype STORE) has room for the samples of one more packet."""
        while store["samples_used"] + state.SAMPLES_PER_PACKET > store["sample_room"]:
            self._full.append(self._block[: store["samples_used"]])
            kept = sum(map(len, self._full))
            if kept + state.SAMPLES_PER_PACKET > self._limit:
                kept = self._thin(store)
            self._open(min(BLOCK, self._limit - kept), store)

    def grouped(
        self, store: Any, left_out: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Values ordered by series (N,), and where each series begins (series + 1,), but for the series ``left_out``."""
        blocks = [*self._full, self._block[: store["samples_used"]]]
        begins = np.zeros(len(left_out) + 1, np.int64)
        for block in blocks:
            kernel.count_series(block, begins)
        begins[1:][left_out] = 0
        np.cumsum(begins, out=begins)
        values = np.empty(int(begins[-1]), np.int64)
        places = begins.copy()
        for block in blocks:
            kernel.place_values(block, places, left_out, values)
        return values, begins

    def _open(self, size: int, store: Any) -> None:
        self._block = np.empty(size, state.SAMPLE)
        store["samples"], store["sample_room"], store["samples_used"] = self._block.ctypes.data, size, 0

    def _thin(self, store: Any) -> int:
        """Drop every other sample until a block's worth or half of the limit is free; returns how many stay."""
        kept = sum(map(len, self._full))
        while kept + min(BLOCK, self._limit // 2) > self._limit:
            store["draw_limit"] //= 2
            self._full = [block[: thin_samples(block, int(store["draw_limit"]))] for block in self._full]
            kept = sum(map(len, self._full))
        self._move_together()
        return kept

    def _move_together(self) -> None:
        """The samples of thinned blocks fill the first of them, in order; the others are free. No fresh memory is touched."""
        parts, self._full = self._full, []
        blocks: list[Any] = [part.base for part in parts]
        at = 0
        for part in parts:
            while len(part):
                some = part[: len(blocks[0]) - at]
                blocks[0].view(_RAW)[at : at + len(some)] = some.view(_RAW)
                at, part = at + len(some), part[len(some) :]
                if at == len(blocks[0]):
                    self._full.append(blocks.pop(0)[:at])
                    at = 0
        if at:
            self._full.append(blocks[0][:at])


def quantiles_of_each(values: npt.NDArray[np.int64], begins: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return (P, 2) median and 95 % quantile of series 2k and 2k + 1 together, NaN without values.

    ``values`` and ``begins`` are those of ``SampleLog.grouped``; the values of a pair are sorted.
    """
    found = np.full((len(begins) // 2, 2), np.nan)
    kernel.describe_short(values, begins, _SHORT, found)
    for pair in np.flatnonzero(np.diff(begins[::2]) > _SHORT):
        found[pair] = quantiles_of(values[begins[2 * pair] : begins[2 * pair + 2]])
    return found


def quantiles_of(values: npt.NDArray[np.int64]) -> tuple[float, float]:
    """Return median and 95 % quantile, NaN without values; sorts them."""
    if not len(values):
        return math.nan, math.nan
    values.sort()
    return sorted_quantile(values, 0.5), sorted_quantile(values, 0.95)
