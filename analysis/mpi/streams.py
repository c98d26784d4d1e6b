"""Streams of bytes between ranks: one for each pair and direction.

The handshake of Open MPI's TCP transport names the rank at each end of a connection. Of several connections of a pair the one
with most bytes is followed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from analysis.mpi.windows import NEVER_CLOSED, Handshake, opened_ns
from analysis.packets import ENDS, NO_FLOW, NO_TIME, REVERSE, SYN, TCP, PacketTable

MOST_PACKETS: Final = 1 << 22
"""Packets that are followed, in 35 bytes each; what comes later is not known."""
_MOST_GAPS: Final = 256
"""Bytes that never come, because the capture dropped them, leave gaps too."""
_COLUMNS: Final = ("time_ns", "orig_len", "payload", "seq", "ack", "window", "flow", "kind")
Int64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Stream:
    """Packets with payload from one rank to another, by time.

    Arrays have shape (n,); ``start`` and ``end`` count bytes of the stream. ``lost_ns`` (m, 2): when bytes were missing
    at the receiver that had been sent, from where that can be seen to where they came; one behind the other.
    ``opened_ns``: when the receiver's window let each packet pass; after the packet before it only where it had been
    closed since that. ``ports``: the sender's host and the receiver's, keys of ``Wire.ports``.
    """

    time_ns: Int64
    start: Int64
    end: Int64
    lost_ns: Int64
    opened_ns: Int64
    ports: tuple[tuple[int, str], tuple[int, str]]

    def lost_until(self, time_ns: Int64) -> Int64:
        """Return the nanoseconds with missing bytes before each time."""
        return spent_until(self.lost_ns, time_ns)

    @property
    def was_closed(self) -> bool:
        """Return whether the receiver's window ever delayed a packet."""
        return bool((self.opened_ns[1:] > self.time_ns[:-1]).any())


@dataclass(frozen=True, slots=True)
class Port:
    """Frames of a host's rank connections by time; ``bytes_before`` has one more."""

    time_ns: Int64
    bytes_before: Int64

    def between(self, after_ns: Int64, until_ns: Int64) -> Int64:
        """Return the bytes on the wire with after < time <= until."""
        first, behind = (np.searchsorted(self.time_ns, at, side="right") for at in (after_ns, until_ns))
        carried: Int64 = self.bytes_before[np.maximum(first, behind)] - self.bytes_before[first]
        return carried


@dataclass(frozen=True, slots=True)
class Wire:
    """All streams by (sender, receiver), and their ports, to ``known_until_ns``."""

    streams: Mapping[tuple[int, int], Stream]
    ports: Mapping[tuple[int, str], Port]
    known_until_ns: int


def spent_until(spans: Int64, time_ns: Int64) -> Int64:
    """Return the nanoseconds of the sequential ``spans`` (m, 2) before each time (n,)."""
    begins, ends = spans[:, 0], spans[:, 1]
    whole = np.concatenate([[0], np.cumsum(ends - begins)])
    place = np.searchsorted(begins, time_ns, side="right")
    last = np.maximum(place - 1, 0)
    over: Int64 = np.maximum(ends[last] - time_ns, 0) if len(ends) else np.zeros(len(time_ns), np.int64)
    return np.where(place > 0, whole[place] - over, 0).astype(np.int64)


class StreamAccumulator:
    """Collector of packets between ranks over successive tables of equal flows."""

    def __init__(self, most_packets: int = MOST_PACKETS) -> None:
        self._left = most_packets
        self._known_until_ns = np.iinfo(np.int64).max
        self._ranks: dict[int, dict[int, tuple[int, int]]] = {}
        self._said: dict[int, Handshake] = {}
        self._pieces: dict[str, list[npt.NDArray[np.generic]]] = {name: [] for name in _COLUMNS}
        self._endpoints = np.zeros(0, ENDS)

    def update(self, table: PacketTable) -> None:
        """Add the next packets."""
        self._endpoints = table.flow_endpoints
        for packet, direction, jobid, rank in table.named_ranks().tolist():
            if table.flow[packet] != NO_FLOW:
                self._ranks.setdefault(int(table.flow[packet]), {}).setdefault(direction, (jobid, rank))
        for row in np.flatnonzero(((table.kind & TCP) > 0) & ((table.tcp_flags & SYN) > 0) & (table.flow != NO_FLOW)):
            handshake, side = self._said.setdefault(int(table.flow[row]), Handshake()), int(table.kind[row]) >> 7
            handshake.add(side, int(table.wscale[row]), int(table.mss[row]))
        of_ranks = np.isin(table.flow, np.fromiter(self._ranks, np.uint32, len(self._ranks)))
        rows = np.flatnonzero(of_ranks & ((table.kind & TCP) > 0) & (table.time_ns != NO_TIME))
        if len(rows) > self._left:
            self._known_until_ns = min(self._known_until_ns, int(table.time_ns[rows[self._left]]))
        rows = rows[(table.tcp_flags[rows] & SYN) == 0][: self._left]
        self._left -= len(rows)
        for name in _COLUMNS:
            self._pieces[name].append(getattr(table, name)[rows])

    def result(self) -> Wire:
        """Return the streams of the MPI job with most handshakes."""
        jobs = Counter(job for sides in self._ranks.values() for job, _ in sides.values())
        job = jobs.most_common(1)[0][0] if jobs else -1
        columns = {name: np.concatenate(pieces or [np.zeros(0, np.int64)]) for name, pieces in self._pieces.items()}
        order = np.argsort(columns["time_ns"], kind="stable")
        columns = {name: column[order] for name, column in columns.items()}
        volume = np.bincount(columns["flow"].astype(np.int64), columns["payload"], minlength=len(self._endpoints))
        chosen: dict[tuple[int, int], int] = {}
        for flow, sides in self._ranks.items():
            if len(sides) == 2 and {sides[0][0], sides[1][0]} == {job}:
                pair = (min(sides[0][1], sides[1][1]), max(sides[0][1], sides[1][1]))
                if volume[flow] >= volume[chosen.get(pair, flow)]:
                    chosen[pair] = flow
        streams: dict[tuple[int, int], Stream] = {}
        for flow in chosen.values():
            streams.update(self._both_ways(flow, columns))
        return Wire(streams, self._ports(columns), int(self._known_until_ns))

    def _both_ways(self, flow: int, columns: Mapping[str, npt.NDArray[np.generic]]) -> dict[tuple[int, int], Stream]:
        sides = self._ranks[flow]
        hosts: tuple[int, int] = tuple(self._endpoints["hosts"][flow].tolist())
        rows = np.flatnonzero(columns["flow"] == flow)
        of_flow = {name: columns[name][rows].astype(np.int64) for name in _COLUMNS}
        from_b = (of_flow["kind"] & REVERSE) > 0
        streams = {}
        for side in (0, 1):
            mine = {name: column[from_b == bool(side)] for name, column in of_flow.items()}
            theirs = {name: column[from_b != bool(side)] for name, column in of_flow.items()}
            ports = ((hosts[side], "out"), (hosts[1 - side], "in"))
            if (mine["payload"] > 0).any():
                handshake = self._said.get(flow, Handshake())
                stream = _stream(mine, theirs, ports, handshake.segment_bytes, handshake.shift_of(1 - side))
                streams[sides[side][1], sides[1 - side][1]] = stream
        return streams

    def _ports(self, columns: Mapping[str, npt.NDArray[np.generic]]) -> dict[tuple[int, str], Port]:
        hosts = self._endpoints["hosts"][columns["flow"].astype(np.int64)]
        from_b = (columns["kind"].astype(np.int64) & REVERSE) > 0
        ports = {}
        for way, host in (
            ("out", np.where(from_b, hosts[:, 1], hosts[:, 0])),
            ("in", np.where(from_b, hosts[:, 0], hosts[:, 1])),
        ):
            for number in np.unique(host).tolist():
                mine = host == number
                carried = np.concatenate([[0], np.cumsum(columns["orig_len"][mine].astype(np.int64))])
                ports[number, way] = Port(columns["time_ns"][mine].astype(np.int64), carried)
        return ports


def _stream(
    mine: Mapping[str, Int64],
    theirs: Mapping[str, Int64],
    ports: tuple[tuple[int, str], tuple[int, str]],
    segment_bytes: int,
    shift: int | None,
) -> Stream:
    """Return the stream; ``shift`` is that of the receiver's windows, None if unknown."""
    data = mine["payload"] > 0
    seq, payload, time_ns = mine["seq"][data], mine["payload"][data], mine["time_ns"][data]
    start = _unwrapped(seq, int(seq[0]))
    header_bytes = theirs["orig_len"] - theirs["payload"]
    shortest = int(header_bytes.min(initial=np.iinfo(np.int64).max))
    answers = _Answers(theirs["time_ns"], _unwrapped(theirs["ack"], int(seq[0])), header_bytes, shortest)
    lost_ns, new = _lost(time_ns, start, start + payload, answers)
    time_ns, start, end = time_ns[new], start[new], (start + payload)[new]
    opened = np.full(len(time_ns), NEVER_CLOSED)
    if shift is not None:
        last_allowed = answers.lacking + (theirs["window"] << shift)
        opened = opened_ns(time_ns, start, end, answers.time_ns, last_allowed, segment_bytes)
    return Stream(time_ns, start, end, lost_ns, opened, ports)


def _unwrapped(numbers: Int64, base: int) -> Int64:
    """Return 32-bit numbers as distances from ``base`` beyond 32 bits."""
    steps = np.diff(numbers, prepend=base).astype(np.uint32).astype(np.int32)
    return np.cumsum(steps, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class _Answers:
    """Acknowledgements of a stream, by time: first missing byte, length of headers."""

    time_ns: Int64
    lacking: Int64
    header_bytes: Int64
    shortest_header_bytes: int

    def missed(self, first: int, last: int, seen_ns: int, again_ns: int) -> bool:
        """Return whether repeated bytes were lost behind the capture point the first time.

        Else their acknowledgement was lost. Of bytes that it had already a receiver says so, in an option of its next header
        (D-SACK, RFC 2883).
        """
        begin, end = np.searchsorted(self.time_ns, [seen_ns, again_ns])
        acknowledged = self.lacking[begin:end]
        if (acknowledged >= last).any() or (acknowledged == first).any():
            return bool((acknowledged == first).any())
        return bool(end < len(self.time_ns) and self.header_bytes[end] == self.shortest_header_bytes)


def _lost(time_ns: Int64, start: Int64, end: Int64, answers: _Answers) -> tuple[Int64, npt.NDArray[np.bool_]]:
    """Return the spans (m, 2) with missing bytes, and which packets (n,) are new.

    Bytes that were lost before the capture point leave a gap that is filled later.
    """
    highest = np.maximum.accumulate(end)
    before = np.concatenate([start[:1], highest[:-1]])
    new = np.ones(len(start), np.bool_)
    gaps: list[tuple[int, int, int]] = []
    lost: list[tuple[int, int]] = []
    for row in np.flatnonzero(start != before).tolist():
        first, last, now = int(start[row]), int(end[row]), int(time_ns[row])
        if first > before[row]:
            gaps = [*gaps[-_MOST_GAPS:], (int(before[row]), first, now)]
        elif filled := [gap for gap in gaps if gap[0] < last and first < gap[1]]:
            lost.append((min(opened for _, _, opened in filled), now))
            gaps = [gap for gap in gaps if gap not in filled] + _left(filled, first, last)
        else:
            first_seen = int(time_ns[np.searchsorted(highest, first, side="right")])
            new[row] = last > before[row] or answers.missed(first, last, first_seen, now)
            if new[row]:
                lost.append((first_seen, now))
    return _united(lost), new


def _left(gaps: Iterable[tuple[int, int, int]], first: int, last: int) -> list[tuple[int, int, int]]:
    """Return the remaining gaps (from, to, opened) after bytes ``first`` to ``last``."""
    pieces = [piece for low, high, opened in gaps for piece in ((low, first, opened), (last, high, opened))]
    return [piece for piece in pieces if piece[0] < piece[1]]


def _united(spans: list[tuple[int, int]]) -> Int64:
    whole: list[list[int]] = []
    for begin, end in sorted(spans):
        if whole and begin <= whole[-1][1]:
            whole[-1][1] = max(whole[-1][1], end)
        else:
            whole.append([begin, end])
    return np.array(whole, np.int64).reshape(-1, 2)
