"""Volume and rate of all traffic and of MPI traffic, accumulated table by table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from analysis.kernels import rates as kernel
from analysis.kernels.rates import ALL, MPI
from analysis.memory import reserved
from analysis.packets import NO_TIME, PacketTable

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

MS: Final = 1_000_000
FINEST_BIN_NS: Final = 100_000
PEAK_WINDOWS: Final[dict[str, int]] = {
    "peak_1ms_bps": MS,
    "peak_10ms_bps": 10 * MS,
    "peak_100ms_bps": 100 * MS,
}
MOST_POINTS: Final = 2000
"""Points of a series: about the pixels of a chart."""
MOST_BINS: Final = 1 << 21
"""Packets are counted per 100 us for 3.5 minutes; longer captures have bins ten times as wide."""
_FEW_BINS: Final = 1 << 17
"""With more bins, room for all is allocated at once: untouched pages take no memory."""
MOST_STAMPS: Final = 1 << 20
"""Different stamps within 100 ms for sliding windows: ten million packets per second, 24 MiB. A power of two."""
_SIZES: Final = 1 << 19
"""Lengths that are counted: Linux sends segments of at most 512 KiB (BIG TCP). Longer frames, which are damage, count as the longest."""
_NO_PACKETS: Final = "no packets"
_NO_BYTES: Final = "the packets have no bytes"


class RateAccumulator:
    """Sums, histograms, series, peaks and gaps of all traffic and of MPI traffic.

    ``update`` takes tables in file order; the split into tables never changes a result. ``scope(ALL)`` and ``scope(MPI)`` return the
    results.
    """

    def __init__(self, most_stamps: int = MOST_STAMPS) -> None:
        self._most_stamps = most_stamps
        self.peaks_are_bounds = False
        """More stamps were within a window than are stored, so that peaks may have been higher."""
        self._sums = np.zeros((2, kernel.TALLY_SIZE), np.int64)
        self._clock = np.zeros((2, kernel.CLOCK_SIZE), np.int64)
        self._sizes = reserved((2, _SIZES), np.int64)
        self._origin_ns: int | None = None
        self._bin_ns = FINEST_BIN_NS
        self._counts = np.zeros((2, 1 << 12), np.int32)
        self._bins = 0
        self._series_ns = MS
        self._series = np.zeros((2, 3, MOST_POINTS), np.int64)
        self._widths = np.array(list(PEAK_WINDOWS.values()), np.int64)
        self._tail = np.zeros(len(self._widths), np.int64)
        self._left, self._peak = (np.zeros((2, len(self._widths)), np.int64) for _ in range(2))
        self._ring = np.zeros((3, 1 << 12), np.int64)
        self._pushed = self._ordered = 0
        self._latest = int(NO_TIME)

    def update(self, table: PacketTable, member: npt.NDArray[np.bool_]) -> tuple[Int64, Int64]:
        """Add a table; ``member`` marks the flows that carry MPI.

        Returns the gaps d_i in ns of all and of MPI traffic, those to the previous table included.
        """
        traffic = np.empty(len(table), np.uint8)
        first, latest = kernel.classify(table.flow, member, table.time_ns, traffic)
        kernel.tally(
            traffic, table.kind, table.orig_len, table.payload, table.window, table.tcp_flags, self._sums, self._sizes
        )
        if latest != NO_TIME:
            self._make_room(first, latest)
        gaps = np.empty((2, len(table)), np.int64)
        written = kernel.timeline(
            traffic, table.time_ns, table.orig_len, table.payload, self._origin_ns or 0,
            self._clock, gaps, self._bin_ns, self._counts, self._series_ns, self._series,
        )  # fmt: skip
        self._slide(table, traffic)
        return gaps[ALL, : written[ALL]], gaps[MPI, : written[MPI]]

    def _slide(self, table: PacketTable, traffic: npt.NDArray[np.uint8]) -> None:
        row = 0
        while True:
            times, sizes, of_mpi = self._ring
            row, self._pushed, self._latest, self._ordered = kernel.sliding_windows(
                traffic, table.time_ns, table.orig_len, row, self._pushed, self._latest, self._ordered, times, sizes, of_mpi,
                self._widths, self._tail, self._left, self._peak,
            )  # fmt: skip
            if row == len(table):
                return
            old, size = self._ring, self._ring.shape[1]
            if size >= self._most_stamps:
                self._forget_oldest(size // 2)
                continue
            places = np.arange(int(self._tail.min()), self._pushed)
            self._ring = np.zeros((3, 2 * size), np.int64)
            self._ring[:, places & (2 * size - 1)] = old[:, places & (size - 1)]

    def _forget_oldest(self, remaining: int) -> None:
        """Drop all but the newest ``remaining`` stamps: peaks become lower bounds."""
        self.peaks_are_bounds = True
        oldest, mask = self._pushed - remaining, self._ring.shape[1] - 1
        behind = self._tail < oldest
        self._left[:, behind] = self._ring[1:, (oldest - 1) & mask, None]
        self._tail[behind] = oldest

    def _make_room(self, first_ns: int, latest_ns: int) -> None:
        """Widen the bins by factors of 10 until the newest packet fits.

        Bins begin with the first packet of the capture, whatever the scope, so that all scopes share one time axis.
        """
        if self._origin_ns is None:
            self._origin_ns = first_ns
        span = max(latest_ns - self._origin_ns, 0)
        while span // self._series_ns >= MOST_POINTS:
            self._series_ns *= 10
            wider = self._series.reshape(2, 3, -1, 10).sum(axis=3)
            self._series = np.concatenate([wider, np.zeros((2, 3, MOST_POINTS - wider.shape[2]), np.int64)], axis=2)
        while span // self._bin_ns >= MOST_BINS:
            self._bin_ns *= 10
            self._bins = kernel.join_bins(self._counts[:, : self._bins], 10)
        self._bins = max(self._bins, span // self._bin_ns + 1)
        room = self._counts.shape[1]
        if self._bins > room:
            held = self._counts
            self._counts = np.zeros((2, MOST_BINS if self._bins > _FEW_BINS else max(self._bins, 2 * room)), np.int32)
            self._counts[:, :room] = held

    def scope(self, scope: int) -> ScopeRates:
        """Return the results of ALL or MPI traffic, independent of later updates."""
        rows = slice(0, 2) if scope == ALL else slice(1, 2)
        first, last, timed, reversals, longest = self._clock[scope].tolist()
        return ScopeRates(
            sums=self._sums[rows].sum(axis=0).tolist(),
            sizes=self._sizes[rows].sum(axis=0),
            timed=timed,
            duration_ns=last - first,
            reversals=reversals,
            longest_reversal_ns=longest,
            origin_ns=self._origin_ns,
            bin_ns=self._bin_ns,
            bins=self._counts[rows, : self._bins].sum(axis=0, dtype=np.int32),
            series_ns=self._series_ns,
            points=self._series[rows].sum(axis=0),
            peaks=self._peak[scope].tolist(),
        )


@dataclass(frozen=True, slots=True)
class ScopeRates:
    """Section 3 of one scope.

    ``sums`` by the slots of the tally kernel; lengths in bytes, times in ns.
    """

    sums: list[int]
    sizes: Int64
    timed: int
    duration_ns: int
    """T = t_N - t_1 in file order; 0 with fewer than two stamped packets."""
    reversals: int
    longest_reversal_ns: int
    origin_ns: int | None
    bin_ns: int
    bins: Int32
    series_ns: int
    points: Int64
    peaks: list[int]

    @property
    def packets(self) -> int:
        return self.sums[kernel.PACKETS]

    @property
    def tcp_packets(self) -> int:
        return self.sums[kernel.TCP_PACKETS]

    @property
    def window_sum(self) -> int:
        """Sum of the raw window fields of all TCP packets."""
        return self.sums[kernel.WINDOW_SUM]

    def size_histogram(self) -> tuple[Int64, Int64]:
        """Return the original lengths (ascending, bytes) and their counts."""
        sizes = np.flatnonzero(self.sizes != 0)  # of truth values: three times as fast
        return sizes, self.sizes[sizes]

    def counts(self) -> Int32:
        """Return packets per ``bin_ns``, from the first packet to the last."""
        filled = self.bins != 0
        first, behind = int(filled.argmax()), len(filled) - int(filled[::-1].argmax())
        return self.bins[first:behind] if filled[first] else self.bins[:0]

    def without_time(self) -> str | None:
        """Return why quantities over time do not exist, or None."""
        if self.packets < 2:
            return "fewer than two packets"
        if self.timed < self.packets:
            return f"{self.packets - self.timed} of {self.packets} packets carry no time stamp"
        if self.duration_ns <= 0:
            return "the last packet is not later than the first"
        return None

    def result(self, sizes: tuple[Int64, Int64] | None = None) -> tuple[dict[str, float], dict[str, str]]:
        """Return (metrics, not_available) of the section "volume".

        Goodput and non_mpi_share are computed elsewhere. ``sizes`` is the ``size_histogram``, if already computed.
        """
        metrics: dict[str, float] = {
            "packets": self.packets,
            "wire_bytes": self.sums[kernel.WIRE],
            "payload_bytes": self.sums[kernel.PAYLOAD],
        }
        missing: dict[str, str] = {}
        self._sizes_result(metrics, missing, *(self.size_histogram() if sizes is None else sizes))
        self._shares_result(metrics, missing)
        self._rates_result(metrics, missing)
        return metrics, missing

    def _sizes_result(self, metrics: dict[str, float], missing: dict[str, str], sizes: Int64, counts: Int64) -> None:
        ids = ("packet_size_mean_bytes", "packet_size_p50_bytes", "packet_size_p95_bytes", "small_packet_share")
        if not self.packets:
            missing.update(dict.fromkeys(ids, _NO_PACKETS))
            return
        metrics[ids[0]] = self.sums[kernel.WIRE] / self.packets
        metrics[ids[1]] = histogram_quantile(sizes, counts, 0.5)
        metrics[ids[2]] = histogram_quantile(sizes, counts, 0.95)
        metrics[ids[3]] = self.sums[kernel.SMALL] / self.packets

    def _shares_result(self, metrics: dict[str, float], missing: dict[str, str]) -> None:
        for identifier, slot in (("pure_ack_share", kernel.PURE_ACKS), ("management_share", kernel.MANAGEMENT)):
            if self.tcp_packets:
                metrics[identifier] = self.sums[slot] / self.tcp_packets
            else:
                missing[identifier] = "no TCP packets"

    def _rates_result(self, metrics: dict[str, float], missing: dict[str, str]) -> None:
        reason = self.without_time()
        if self.packets and self.timed == self.packets:
            metrics["duration_s"] = self.duration_ns / 1e9
        else:
            missing["duration_s"] = reason or _NO_PACKETS
        if reason is not None:
            ids = ("packet_intensity_pps", "throughput_Bps", "throughput_bps", "line_rate_bps", "burstiness")
            missing.update(dict.fromkeys((*ids, *PEAK_WINDOWS), reason))
            return
        duration_s = self.duration_ns / 1e9
        wire_bytes = self.sums[kernel.WIRE]
        metrics["packet_intensity_pps"] = (self.packets - 1) / duration_s
        metrics["throughput_Bps"] = wire_bytes / duration_s
        metrics["throughput_bps"] = 8 * wire_bytes / duration_s
        metrics["line_rate_bps"] = 8 * self.sums[kernel.LINE] / duration_s
        for peak_bytes, (identifier, width_ns) in zip(self.peaks, PEAK_WINDOWS.items(), strict=True):
            if width_ns > self.duration_ns:
                missing[identifier] = "the capture is shorter than the window"
            else:
                metrics[identifier] = 8 * peak_bytes / (width_ns / 1e9)
        if not wire_bytes:
            missing["burstiness"] = _NO_BYTES
        elif "peak_10ms_bps" in metrics:
            metrics["burstiness"] = metrics["peak_10ms_bps"] / metrics["throughput_bps"]
        else:
            missing["burstiness"] = missing["peak_10ms_bps"]

    def series(self) -> dict[str, Any]:
        """Return packets, bytes and payload; point k covers [k, k+1) bin_s after start_s."""
        if self.origin_ns is None:
            return {"bin_s": None, "start_s": None, "packets": [], "wire_bytes": [], "payload_bytes": []}
        filled = np.flatnonzero(self.points[0])
        points = self.points[:, : int(filled[-1]) + 1 if len(filled) else 0]
        return {
            "bin_s": self.series_ns / 1e9,
            "start_s": self.origin_ns / 1e9,
            "packets": points[0].tolist(),
            "wire_bytes": points[1].tolist(),
            "payload_bytes": points[2].tolist(),
        }


def histogram_quantile(values: Int64, counts: Int64, share: float) -> float:
    """Return a quantile (type 7) of ascending ``values`` that occur ``counts`` times."""
    cumulated = np.cumsum(counts)
    position = (int(cumulated[-1]) - 1) * share
    low = math.floor(position)
    below = int(values[np.searchsorted(cumulated, low, side="right")])
    if position == low:
        return float(below)
    above = int(values[np.searchsorted(cumulated, low + 1, side="right")])
    return below + (position - low) * (above - below)
