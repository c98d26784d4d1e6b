"""Sums over connections that made room for others: exact where sums, least and most are asked for, medians to 0.1 %."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from analysis.kernels import gaps
from analysis.kernels import tcp_state as state
from analysis.packets import NO_TIME
from analysis.traffic.flow_records import FLOW, rtt_samples

HALVES: Final = ("rtt_handshake_s", "rtt_half_a_s", "rtt_half_b_s")
"""What medians are taken of."""
_LEAST: Final = ("window_min_bytes", "rtt_min_s")
_MOST: Final = ("bytes_in_flight_max",)
Records = npt.NDArray[np.void]


class Histogram:
    """Times in groups of 0.1 %, of which a median is taken."""

    def __init__(self) -> None:
        self._counts = np.zeros(0, np.int64)
        self._not_positive = 0

    @property
    def count(self) -> int:
        return self._not_positive + int(self._counts.sum())

    def add(self, seconds: npt.NDArray[np.float64]) -> None:
        if not len(self._counts):
            self._counts = np.zeros(gaps.BINS, np.int64)
        signs, nothing = np.zeros(3, np.int64), np.zeros(1)
        ns = np.rint(seconds * 1e9).astype(np.int64)
        gaps.add_gaps(ns, 0, self._counts, signs, nothing, np.empty(0, np.int32), np.empty(0, np.int64))
        self._not_positive += int(signs[gaps.ZERO] + signs[gaps.NEGATIVE])

    def median_s(self) -> float:
        """The value in the middle (the lower one of two). Raises IndexError when there are none."""
        place = (self.count - 1) // 2 - self._not_positive
        if place < 0:
            return 0.0
        bins = np.flatnonzero(self._counts)
        chosen = bins[np.searchsorted(np.cumsum(self._counts[bins]), place, side="right")]
        low, high = gaps.bin_edges(np.array([chosen, chosen + 1]))
        return float(np.ceil(low) + np.ceil(high) - 1) / 2e9

    def include(self, other: Histogram) -> None:
        """Add what another one holds."""
        if len(other._counts):
            self._counts += other._counts
        self._not_positive += other._not_positive


class Aside:
    """What connections measured, after they are gone. ``row`` and ``windows`` stand for all of them in sums and extremes."""

    def __init__(self) -> None:
        self.empty = True
        self.connections = 0
        self.without_handshake = 0
        self.aborted = 0
        self.row = np.zeros(1, FLOW)
        for name in FLOW.names or ():
            if FLOW[name].kind == "f":
                self.row[name] = np.nan
        self.row["first_ns"] = self.row["last_ns"] = NO_TIME
        self.row["resumed"] = True
        self.windows = np.zeros((1, 2))
        self.halves = {name: Histogram() for name in HALVES}

    def add(self, records: Records, windows: npt.NDArray[np.float64]) -> None:
        """Rows (C,) of dtype FLOW with the sum and number of their windows (C, 2)."""
        if not len(records):
            return
        self.empty = False
        row, begun = self.row, ~records["resumed"]
        self.connections += int(np.count_nonzero(begun))
        self.without_handshake += int(np.count_nonzero(begun & (records["syns_ab"] + records["syns_ba"] == 0)))
        self.aborted += int(np.count_nonzero(records["aborted"]))
        row["rtt_samples_ab"] += rtt_samples(records).sum()
        row["handshake"] = max(int(row["handshake"][0]), int(records["handshake"].max()))
        for way in ("ab", "ba"):
            for name in state.COUNTERS:
                if name != "rtt_samples":
                    row[f"{name}_{way}"] += records[f"{name}_{way}"].sum()
            for name in _LEAST:
                row[f"{name}_{way}"] = _extreme(np.fmin, row, records, f"{name}_{way}")
            for name in _MOST:
                row[f"{name}_{way}"] = _extreme(np.fmax, row, records, f"{name}_{way}")
        row["rtt_min_s"] = _extreme(np.fmin, row, records, "rtt_min_s")
        row["bdp_bytes"] = _extreme(np.fmax, row, records, "bdp_bytes")
        self.windows += windows.sum(axis=0)
        timed = records[~np.isnan(records["rtt_handshake_s"])]
        if len(timed):
            for name, times in self.halves.items():
                times.add(timed[name])


def medians(records: Records, aside: Sequence[Aside]) -> dict[str, float]:
    """Medians of the handshake's parts in seconds: those of ``records`` and those set aside, together."""
    timed = ~np.isnan(records["rtt_handshake_s"])
    known = {}
    for name in HALVES:
        times = Histogram()
        times.add(records[name][timed])
        for part in aside:
            times.include(part.halves[name])
        if times.count:
            known[name] = times.median_s()
    return known


def _extreme(ufunc: Any, row: Records, records: Records, name: str) -> float:
    return float(ufunc(row[name][0], ufunc.reduce(records[name])))
