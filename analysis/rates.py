"""Volume and rate of one scope (all traffic, or MPI only), accumulated table by table (METRICS.md section 3)."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from analysis.kernels import rates as kernel
from analysis.packets import NO_TIME, PacketTable

MS: Final = 1_000_000
FINEST_BIN_NS: Final = 100_000
PEAK_WINDOWS: Final[dict[str, int]] = {
    "peak_1ms_bps": MS,
    "peak_10ms_bps": 10 * MS,
    "peak_100ms_bps": 100 * MS,
}
MOST_POINTS: Final = 2000
"""Points of a series: more than a chart has pixels help nobody."""
MOST_BINS: Final = 1 << 22
"""Packets are counted per 100 us for 7 minutes; longer captures get bins ten times as wide, so memory stays bounded."""
_SIZES: Final = 1 << 17


class RateAccumulator:
    """Sums, histogram, series, peaks and gaps of the packets of one scope.

    ``update(table, member)`` takes tables in file order; ``member`` says per flow index whether it belongs, None means
    every packet. The split into tables never changes a result.
    """

    def __init__(self) -> None:
        self.sums = np.zeros(kernel.TALLY_SIZE, np.int64)
        self.clock = np.zeros(kernel.CLOCK_SIZE, np.int64)
        self._sizes = np.zeros(_SIZES, np.int64)
        self._larger: dict[int, int] = {}
        self.bin_ns = FINEST_BIN_NS
        self._counts = np.zeros(1 << 12, np.int32)
        self._started = False
        self.series_ns = MS
        self._series = np.zeros((3, MOST_POINTS), np.int64)
        self._widths = np.array(list(PEAK_WINDOWS.values()), np.int64)
        self._tail, self._held, self._peak = (np.zeros(len(self._widths), np.int64) for _ in range(3))
        self._ring = np.zeros((2, 1 << 12), np.int64)

    def update(self, table: PacketTable, member: npt.NDArray[np.bool_] | None = None) -> npt.NDArray[np.int64]:
        """Add a table; returns its gaps d_i in ns (the one to the previous table included)."""
        everything = member is None
        belongs = np.zeros(1, np.bool_) if member is None else member
        beyond = kernel.tally(
            table.kind, table.flow, table.orig_len, table.payload, table.window, table.tcp_flags,
            everything, belongs, self.sums, self._sizes,
        )  # fmt: skip
        if beyond:
            self._count_larger(table, member)
        self._make_room(table)
        gaps = np.empty(len(table), np.int64)
        n = kernel.timeline(
            table.time_ns, table.flow, table.orig_len, table.payload, everything, belongs,
            self.clock, gaps, self.bin_ns, self._counts, self.series_ns, self._series,
        )  # fmt: skip
        row = 0
        while True:
            row = kernel.sliding_windows(
                table.time_ns, table.flow, table.orig_len, row, everything, belongs,
                self.clock, self._ring[0], self._ring[1], self._widths, self._tail, self._held, self._peak,
            )  # fmt: skip
            if row == len(table):
                return gaps[:n]
            self._grow_ring()

    def _count_larger(self, table: PacketTable, member: npt.NDArray[np.bool_] | None) -> None:
        """Frames beyond 128 KiB are rare (BIG TCP, damage); they are counted by hand."""
        rows = np.flatnonzero(table.orig_len >= _SIZES)
        for row in rows:
            flow = int(table.flow[row])
            if member is None or (flow < len(member) and member[flow]):
                size = int(table.orig_len[row])
                self._larger[size] = self._larger.get(size, 0) + 1

    def _make_room(self, table: PacketTable) -> None:
        """Widen the bins by tens until the newest packet fits.

        Bins begin with the first packet of the capture, whatever the scope, so that all scopes share one time axis.
        """
        stamped = table.time_ns[table.time_ns != NO_TIME] if table.time_ns.min(initial=0) == NO_TIME else table.time_ns
        if not len(stamped):
            return
        if not self._started:
            self.clock[kernel.ORIGIN] = stamped[0]
            self._started = True
        span = max(int(stamped.max()) - int(self.clock[kernel.ORIGIN]), 0)
        while span // self.series_ns >= MOST_POINTS:
            self._series = np.concatenate(
                [self._series.reshape(3, -1, 10).sum(axis=2), np.zeros((3, MOST_POINTS * 9 // 10), np.int64)], axis=1
            )
            self.series_ns *= 10
        while span // self.bin_ns >= MOST_BINS:
            whole = -(-len(self._counts) // 10) * 10
            self._counts = (
                np.pad(self._counts, (0, whole - len(self._counts))).reshape(-1, 10).sum(axis=1, dtype=np.int32)
            )
            self.bin_ns *= 10
        needed = span // self.bin_ns + 1
        if needed > len(self._counts):
            self._counts = np.pad(self._counts, (0, max(needed, 2 * len(self._counts)) - len(self._counts)))

    def _grow_ring(self) -> None:
        old, size = self._ring, self._ring.shape[1]
        self._ring = np.zeros((2, 2 * size), np.int64)
        places = np.arange(int(self._tail.min()), int(self.clock[kernel.PUSHED]))
        self._ring[:, places & (2 * size - 1)] = old[:, places & (size - 1)]

    @property
    def packets(self) -> int:
        return int(self.sums[kernel.PACKETS])

    @property
    def duration_ns(self) -> int:
        """T = t_N - t_1 in file order; 0 with fewer than two stamped packets."""
        return int(self.clock[kernel.LAST] - self.clock[kernel.FIRST])

    def size_histogram(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Original lengths that occur (ascending, bytes) and how often."""
        sizes = np.flatnonzero(self._sizes)
        larger = sorted(self._larger)
        counts = [self._larger[size] for size in larger]
        return np.append(sizes, larger).astype(np.int64), np.append(self._sizes[sizes], counts).astype(np.int64)

    def counts(self) -> npt.NDArray[np.int64]:
        """Packets per ``bin_ns`` from the bin of the first packet to that of the last."""
        filled = np.flatnonzero(self._counts)
        return self._counts[filled[0] : filled[-1] + 1].astype(np.int64) if len(filled) else np.zeros(0, np.int64)

    def without_time(self) -> str | None:
        """Why quantities over time do not exist, or None when they do."""
        packets, timed = self.packets, int(self.clock[kernel.TIMED])
        if packets < 2:
            return "fewer than two packets"
        if timed < packets:
            return f"{packets - timed} of {packets} packets carry no time stamp"
        if self.duration_ns <= 0:
            return "the last packet is not later than the first"
        return None

    def result(self) -> tuple[dict[str, float], dict[str, str]]:
        """(metrics, not_available) of METRICS.md section 3, without goodput and non_mpi_share."""
        metrics: dict[str, float] = {
            "packets": self.packets,
            "wire_bytes": int(self.sums[kernel.WIRE]),
            "payload_bytes": int(self.sums[kernel.PAYLOAD]),
        }
        missing: dict[str, str] = {}
        self._sizes_result(metrics, missing)
        self._shares_result(metrics, missing)
        self._rates_result(metrics, missing)
        return metrics, missing

    def _sizes_result(self, metrics: dict[str, float], missing: dict[str, str]) -> None:
        ids = ("packet_size_mean_bytes", "packet_size_p50_bytes", "packet_size_p95_bytes", "small_packet_share")
        if not self.packets:
            missing.update(dict.fromkeys(ids, "no packets"))
            return
        sizes, counts = self.size_histogram()
        metrics[ids[0]] = int(self.sums[kernel.WIRE]) / self.packets
        metrics[ids[1]] = histogram_quantile(sizes, counts, 0.5)
        metrics[ids[2]] = histogram_quantile(sizes, counts, 0.95)
        metrics[ids[3]] = int(self.sums[kernel.SMALL]) / self.packets

    def _shares_result(self, metrics: dict[str, float], missing: dict[str, str]) -> None:
        tcp = int(self.sums[kernel.TCP_PACKETS])
        for identifier, slot in (("pure_ack_share", kernel.PURE_ACKS), ("management_share", kernel.MANAGEMENT)):
            if tcp:
                metrics[identifier] = int(self.sums[slot]) / tcp
            else:
                missing[identifier] = "no TCP packets"

    def _rates_result(self, metrics: dict[str, float], missing: dict[str, str]) -> None:
        reason = self.without_time()
        if reason is not None:
            ids = ("packet_intensity_pps", "throughput_Bps", "throughput_bps", "line_rate_bps", "burstiness")
            missing.update(dict.fromkeys((*ids, *PEAK_WINDOWS), reason))
            if self.packets >= 1 and self.packets == self.clock[kernel.TIMED]:
                metrics["duration_s"] = self.duration_ns / 1e9
            else:
                missing["duration_s"] = reason if self.packets else "no packets"
            return
        duration_s = self.duration_ns / 1e9
        wire = int(self.sums[kernel.WIRE])
        metrics["duration_s"] = duration_s
        metrics["packet_intensity_pps"] = (self.packets - 1) / duration_s
        metrics["throughput_Bps"] = wire / duration_s
        metrics["throughput_bps"] = 8 * wire / duration_s
        metrics["line_rate_bps"] = 8 * int(self.sums[kernel.LINE]) / duration_s
        for place, (identifier, width_ns) in enumerate(PEAK_WINDOWS.items()):
            if width_ns > self.duration_ns:
                missing[identifier] = "the capture is shorter than the window"
            else:
                metrics[identifier] = 8 * int(self._peak[place]) / (width_ns / 1e9)
        if "peak_10ms_bps" in metrics:
            metrics["burstiness"] = metrics["peak_10ms_bps"] / metrics["throughput_bps"]
        else:
            missing["burstiness"] = missing["peak_10ms_bps"]

    def series(self) -> dict[str, Any]:
        """Packets, bytes and payload per bin; point k covers [k, k+1) bin_s after start_s."""
        if not self.clock[kernel.TIMED]:
            return {"bin_s": None, "start_s": None, "packets": [], "wire_bytes": [], "payload_bytes": []}
        filled = np.flatnonzero(self._series[0])
        points = self._series[:, : int(filled[-1]) + 1]
        return {
            "bin_s": self.series_ns / 1e9,
            "start_s": int(self.clock[kernel.ORIGIN]) / 1e9,
            "packets": points[0].tolist(),
            "wire_bytes": points[1].tolist(),
            "payload_bytes": points[2].tolist(),
        }


def histogram_quantile(values: npt.NDArray[np.int64], counts: npt.NDArray[np.int64], share: float) -> float:
    """Quantile of the multiset that holds ``values[k]`` (ascending) ``counts[k]`` times: Hyndman-Fan type 7."""
    cumulated = np.cumsum(counts)
    place = (int(cumulated[-1]) - 1) * share
    low = math.floor(place)
    below = int(values[np.searchsorted(cumulated, low, side="right")])
    if place == low:
        return float(below)
    above = int(values[np.searchsorted(cumulated, low + 1, side="right")])
    return below + (place - low) * (above - below)
