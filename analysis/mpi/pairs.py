"""Streams between two ranks with their sends: causes of waits between packets."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from analysis.mpi.calls import Calls
from analysis.mpi.cores import Cores, Float64
from analysis.mpi.functions import FUNCTIONS
from analysis.mpi.order import NEVER
from analysis.mpi.streams import Int64, Stream, Wire
from analysis.mpi.wait_sums import CAUSES

SILENCE_NS: Final = 190_000_000
"""Longest silence of a sender with data without a loss: Linux retransmits after 200 ms."""
EAGER_BYTES: Final = 65_536
"""Open MPI hands messages up to here to the kernel as a whole; longer ones wait for the receiver."""
HEADER_BYTES: Final = 22
"""Minimum header of a message of Open MPI's TCP transport."""
_SLACK_BYTES: Final = 512
_INTO_BYTES: Final = 64
"""So far into a packet its first message is looked up: headers differ by a few bytes."""
CLOCKS_APART_NS: Final = 20_000
"""A call's start, by the processor's counter, may seem to be later than its first packet: 1 to 2 us were seen."""

_SENDS: Final = [
    n for n, f in enumerate(FUNCTIONS) if f.bytes.startswith(("message", "start 0")) and f.kind == "point-to-point"
]
_TO_ALL: Final = [
    n
    for n, f in enumerate(FUNCTIONS)
    if f.kind in ("collective", "synchronisation", "one-sided", "input/output") or f.name == "Startall"
]
"""Calls that may send unknown amounts to any rank."""

NOT_KEPT: Final = "the sender's trace does not cover that time"
NOT_OURS: Final = "the packets belong to no message of the program"
SILENT: Final = "a large message was in transit, but nothing was sent for long"
_UNKNOWN: Final = CAUSES.index("unknown")
_BY_CALLS: Final = [
    CAUSES.index(cause) for cause in ("late_sender", "no_core", "line_rate", "under_way", "closed_window")
]
"""Causes that need the calls of the sender."""


class Pair:
    """A stream, and when the sender handed over the first bytes of each packet."""

    def __init__(
        self, calls: Calls, cores: Cores, wire: Wire, stream: Stream, ranks: tuple[int, int], rate_bps: float | None
    ) -> None:
        (self.sender, self.receiver), self.stream, self._cores = ranks, stream, cores
        self._ports = [wire.ports[port] for port in stream.ports]
        self._rate_bps = rate_bps
        sends = calls.of(self.sender)
        to_all = np.isin(sends["function"], _TO_ALL)
        sends = sends[to_all | (np.isin(sends["function"], _SENDS) & (sends["peer"] == self.receiver))]
        to_all = np.isin(sends["function"], _TO_ALL)
        size = np.where(to_all, 0, sends["bytes"] + HEADER_BYTES)
        queued = np.cumsum(size) - size
        highest = np.concatenate([[0], np.maximum.accumulate(stream.end)])
        on_wire = highest[np.searchsorted(stream.time_ns, sends["began_ns"] - CLOCKS_APART_NS)]
        begins = queued + np.maximum.accumulate(on_wire - queued) if len(sends) else queued
        first = np.searchsorted(begins, np.minimum(stream.start + _INTO_BYTES, stream.end - 1), side="right") - 1
        self.kept = first >= 0
        self.handed_ns = np.full(len(first), NEVER)
        self.returned_ns, self.eager, self.ours = self.handed_ns, first < -1, first < -1
        if not len(sends):
            return
        at = np.maximum(first, 0)
        self.handed_ns = np.where(self.kept, sends["began_ns"][at], NEVER)
        self.returned_ns = sends["ended_ns"][at]
        self.eager = (size[at] <= EAGER_BYTES + HEADER_BYTES) & ~to_all[at]
        last = np.maximum(np.searchsorted(begins, stream.end - 1, side="right") - 1, 0)
        fits = begins + size + _SLACK_BYTES + size // 64
        self.ours = (begins != on_wire)[last] | to_all[last] | (stream.end <= fits[last])

    def pieces(self, rows: Int64, after_ns: Int64) -> tuple[Float64, dict[str, Float64]]:
        """Return the time up to the packets ``rows`` by cause, and unknown time by reason.

        The first has the shape (rows, causes); time counts from ``after_ns``.
        """
        until = self.stream.time_ns[rows]
        handed = np.clip(self.handed_ns[rows], after_ns, until)
        lost = self.stream.lost_until
        lost_before, lost_after = lost(handed) - lost(after_ns), lost(until) - lost(handed)
        late, remaining = handed - after_ns - lost_before, until - handed - lost_after
        no_core = np.minimum(late, self._cores.outside(self.sender, after_ns, handed))
        closed = np.minimum(self._closed_ns(rows, after_ns), remaining)
        missing, remaining = lost_before + lost_after, remaining - closed
        quiet_since = np.maximum(self.handed_ns[rows], self.stream.time_ns[np.maximum(rows - 1, 0)])
        quiet = until - np.where(rows > 0, quiet_since, self.handed_ns[rows])
        silent = quiet - self._closed_ns(rows, quiet_since) >= SILENCE_NS
        sent_whole = self.eager[rows] & (self.returned_ns[rows] <= until - SILENCE_NS)
        missing = missing + np.where(silent & sent_whole, remaining, 0)
        stuck = np.where(silent & ~sent_whole, remaining, 0)
        remaining = np.where(silent, 0, remaining)
        at_rate = self._at_line_rate(handed, until, remaining)
        by_cause = of_each(
            late_sender=late - no_core,
            no_core=no_core,
            line_rate=at_rate,
            under_way=remaining - at_rate,
            closed_window=closed,
            retransmission=missing,
            unknown=stuck,
        )
        return by_cause, self._unknown_by_reason(rows, by_cause)

    def _unknown_by_reason(self, rows: Int64, by_cause: Float64) -> dict[str, Float64]:
        """Return unknown nanoseconds by reason, moving there what needs unknown calls."""
        reasons = {SILENT: by_cause[:, _UNKNOWN] * (self.kept & self.ours)[rows]}
        for reason, which in {NOT_KEPT: ~self.kept[rows], NOT_OURS: self.kept[rows] & ~self.ours[rows]}.items():
            whole = np.where(which, by_cause[:, [*_BY_CALLS, _UNKNOWN]].sum(axis=1), 0.0)
            by_cause[:, _BY_CALLS] = np.where(which[:, None], 0.0, by_cause[:, _BY_CALLS])
            by_cause[:, _UNKNOWN] = np.where(which, whole, by_cause[:, _UNKNOWN])
            reasons[reason] = whole
        return reasons

    def closed_ns(self) -> Int64:
        """Return the sequential spans (m, 2) in which the receiver's window was closed."""
        rows = np.flatnonzero(self.kept)
        rows = rows[rows > 0]
        begins = np.maximum(self.handed_ns[rows], self.stream.time_ns[rows - 1])
        closed: Int64 = np.stack([begins, self.stream.opened_ns[rows]], axis=1)
        return closed[closed[:, 0] < closed[:, 1]]

    def _closed_ns(self, rows: Int64, after_ns: Int64) -> Int64:
        """Return how long the closed window delayed each of these packets."""
        since = np.maximum(np.maximum(self.handed_ns[rows], self.stream.time_ns[np.maximum(rows - 1, 0)]), after_ns)
        opened = self.stream.opened_ns[rows]
        lost = self.stream.lost_until(np.maximum(opened, since)) - self.stream.lost_until(since)
        closed: Int64 = np.maximum(opened - since - lost, 0)
        return closed

    def _at_line_rate(self, after_ns: Int64, until_ns: Int64, most_ns: Int64) -> npt.NDArray[np.float64]:
        if self._rate_bps is None:
            return np.zeros(len(after_ns))
        carried = np.max([port.between(after_ns, until_ns) for port in self._ports], axis=0)
        at_rate: npt.NDArray[np.float64] = np.minimum(most_ns, 8e9 * carried / self._rate_bps)
        return at_rate


def of_each(**nanoseconds: npt.NDArray[np.generic]) -> Float64:
    """Return nanoseconds of pieces (n,) as columns in the order of CAUSES."""
    count = len(next(iter(nanoseconds.values())))
    return np.stack([nanoseconds.get(cause, np.zeros(count)) for cause in CAUSES], axis=1).astype(np.float64)
