"""How far a capture may be believed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from analysis.kernels import trust as kernel
from analysis.memory import reserved
from analysis.numbers import amount, grouped, plural
from analysis.packets import MOST_FLOWS, MOST_HOSTS, NO_FLOW, RST, SYN, PacketTable
from analysis.traffic import uncoalesce
from analysis.trust_level import TrustLevel

UNUSABLE_DROP_SHARE: Final = 0.05
"""Above 5 % dropped, rates and gaps describe the capture tool more than the network."""
REVERSAL_SHARE: Final = 0.01
REVERSAL_NS: Final = 1_000_000
"""Processors that stamp side by side swap neighbours by microseconds; more than that is a clock that was set."""
_LINK_LAYER: Final = 14 + 2 * 4
"""Ethernet with two VLAN tags: a frame longer than MTU + this is no frame of the wire."""
_HEADERS: Final = 40
_RING: Final = 1 << 12
_DROPPED: Final = ("dropped", "dropped_by_interface", "dropped_between_packets")
"""Of a file: what statistics blocks count, and what packets count beyond that."""
LEFT: Final = "super_segments_left"
"""Counter: those that cannot be split, because no segment size is known or they are not TCP."""
_NO_REPORT: Final = "the capture tool's own report was not given and the file holds no statistics"


_LEFT_OUT: Final[dict[str, tuple[str, str, str]]] = {
    "cut_headers": (
        "packet has",
        "packets have",
        "headers that are cut short or contradict themselves, so what they carry is left out",
    ),
    "fragments": (
        "packet is a later IP fragment",
        "packets are later IP fragments",
        "whose payload is in no connection",
    ),
    "hidden": (
        "packet carries",
        "packets carry",
        "encrypted data or an unsupported encapsulation: counted, not analysed (--decoder pyshark reads more of them)",
    ),
    "beyond_frame": ("packet claims", "packets claim", "to be longer than the frame"),
    "undefined_interface": ("packet belongs", "packets belong", "to an interface that the file does not define"),
    "odd_stamps": (
        "packet is",
        "packets are",
        "stamped with a time that cannot be (two seconds or more in its fraction, or beyond the years 1824 to 2115)",
    ),
    "gaps_forgotten": ("gap", "gaps", "in sequence numbers had to be forgotten"),
    "segments_forgotten": (
        "unacknowledged segment",
        "unacknowledged segments",
        "had to be forgotten, so round trips are missing",
    ),
    "greetings_forgotten": (
        "connection began",
        "connections began",
        "as those of Open MPI 1.8 to 2 do and had to be forgotten before the answer, so ranks may be missing",
    ),
    "mixed_ways": (
        "connection has",
        "connections have",
        "packets of one direction under different VLANs or labels: networks with equal addresses may be counted as one",
    ),
    "torn_by_networks": (
        "connection has",
        "connections have",
        "each direction in a virtual network of its own: two halves without round trips",
    ),
    "queue_pairs_beyond_limit": (
        "packet belongs",
        "packets belong",
        "to queue pairs of RoCEv2 beyond the limit, whose retransmissions are not known",
    ),
}
"""What the metrics are about and nevertheless leave out, by its count among the facts; never with trust "good"."""
_BEYOND_CAPACITY: Final[dict[str, tuple[str, str, str]]] = {
    "addresses_not_kept": (
        "time",
        "times",
        f"an address had no room in the table of hosts, whose capacity is {grouped(MOST_HOSTS)}",
    ),
    "packets_beyond_flow_limit": (
        "packet belongs",
        "packets belong",
        f"to flows without room in their table, whose capacity is {grouped(MOST_FLOWS)}",
    ),
    "untracked_packets": (
        "packet belongs",
        "packets belong",
        f"to connections that are not followed: the capacity is {grouped(MOST_FLOWS)}",
    ),
    "missed_by_pairs": ("byte is", "bytes are", "of pairs of hosts without room in the host matrix"),
}
"""What makes a capture unusable, by its count among the facts: metrics of hosts and connections are those of a part."""


@dataclass(frozen=True, slots=True)
class DropCounters:
    """What the capture tool said at its end; None where it said nothing. A savefile holds none of this."""

    captured: int | None = None
    received: int | None = None
    dropped: int | None = None


@dataclass(frozen=True, slots=True)
class Trust:
    """The verdict on a capture, why, and the counters behind it (catalogue section "trust")."""

    verdict: TrustLevel
    reasons: tuple[str, ...]
    counters: dict[str, float]
    remarks: tuple[str, ...] = ()
    """What nobody could check, and what speaks neither for nor against the capture."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "reasons": list(self.reasons),
            "remarks": list(self.remarks),
            "counters": dict(self.counters),
        }


class TrustAccumulator:
    """Finds frames captured twice and super-segments, table by table."""

    def __init__(self, mtu: int | None = None) -> None:
        self._longest_frame = mtu + _LINK_LAYER if mtu else 0
        self._usual_mss = mtu - _HEADERS if mtu else 0
        self._heads, self._links, self._times = (np.zeros(_RING, np.int64) for _ in range(3))
        self._words = np.zeros((_RING, 3), np.uint64)
        self._pushed = 0
        self._announced, self._announced_again = (reserved((MOST_FLOWS, 2), np.uint16) for _ in range(2))
        self._counters = np.zeros(kernel.COUNTERS, np.int64)
        self._duplicates = 0
        self._copies = np.zeros(0, np.int64)
        self._strays = np.zeros(0, np.uint32)
        self._added = 0

    def update(self, table: PacketTable) -> tuple[PacketTable, npt.NDArray[np.bool_]]:
        """Add a table; returns it as it was on the wire (`analysis.traffic.uncoalesce`), and which rows repeat an earlier frame."""
        duplicate = np.empty(len(table), np.bool_)
        found, self._pushed = kernel.duplicates(
            table.time_ns, table.kind, table.flow, table.payload, table.seq, table.ack, table.fingerprint,
            self._heads, self._links, self._times, self._words, self._pushed, duplicate,
        )  # fmt: skip
        if found and not np.any(table.tcp_flags[duplicate] & (SYN | RST) == 0):
            # Linux numbers every SYN-ACK 0 and repeats it at once when the SYN comes again, perhaps just as its own timer
            # does; a closed socket answers every segment that still comes with the same RST, numbered 0 too. These are true
            # frames, all of them. A capture that sees frames twice sees others than these twice.
            duplicate[:] = False
            found = 0
        self._duplicates += found
        self._strays = table.flow_strays
        if found:
            self._note_copies(table.flow[duplicate])
        on_the_wire, duplicate = uncoalesce.split(
            table, self._pieces(table, self._announced, self._counters), duplicate
        )
        self._added += len(on_the_wire) - len(table)
        return on_the_wire, duplicate

    def _note_copies(self, flow: npt.NDArray[np.uint32]) -> None:
        copies = np.bincount(flow[flow != NO_FLOW], minlength=len(self._copies))
        copies[: len(self._copies)] += self._copies
        self._copies = copies

    def _mixed(self) -> int:
        """Flows with packets of one direction under different VLANs or labels that are no copies: a router's two sides show each twice."""
        if not self._strays.any():  # without a copy of what a million flows have
            return 0
        strayed = np.flatnonzero(self._strays)
        copies = np.zeros(len(strayed), np.int64)
        known = strayed < len(self._copies)
        copies[known] = self._copies[strayed[known]]
        return int(np.count_nonzero(self._strays[strayed] > copies))

    def again(self, table: PacketTable) -> PacketTable:
        """The same table as ``update`` gave it, when a capture is read a second time from its beginning.

        What connections announce is learnt anew: known before its SYN, it would split what was left whole at first.
        """
        return uncoalesce.split(table, self._pieces(table, self._announced_again, np.zeros_like(self._counters)))[0]

    def _pieces(
        self, table: PacketTable, announced: npt.NDArray[np.uint16], counters: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.uint32]:
        piece = np.empty(len(table), np.uint32)
        kernel.super_segments(
            table.kind, table.flow, table.orig_len, table.payload, table.mss,
            self._longest_frame, self._usual_mss, announced, counters, piece,
        )  # fmt: skip
        return piece

    @property
    def were_split(self) -> bool:
        """Whether rows were added that were no frames of the capture."""
        return self._added > 0

    def left_out(self) -> dict[str, int]:
        """Packets whose transport header, and so whatever depends on it, is in no metric."""
        cut, fragments = self._counters[[kernel.CUT_HEADERS, kernel.FRAGMENTS]].tolist()
        return {"cut_headers": cut, "fragments": fragments, "mixed_ways": self._mixed()}

    def counters(self, packets: int, tcp_packets: int) -> tuple[dict[str, float], dict[str, str]]:
        """(metrics, not_available) for super-segments and duplicates; the counts are those after the split."""
        metrics: dict[str, float] = {"duplicated_packets": self._duplicates}
        ids = ("super_segments", "super_segment_share", "wire_packets_estimated")
        judged, unjudged = int(self._counters[kernel.JUDGED]), int(self._counters[kernel.UNJUDGED])
        if unjudged and not judged:
            return metrics, dict.fromkeys(ids, "no SYN captured and no MTU given, so no segment's limit is known")
        metrics["super_segments"] = int(self._counters[kernel.SUPER])
        metrics[LEFT] = metrics["super_segments"] - int(self._counters[kernel.SPLIT])
        metrics["wire_packets_estimated"] = packets
        if not tcp_packets:
            return metrics, {"super_segment_share": "no TCP packets"}
        metrics["super_segment_share"] = metrics["super_segments"] / (tcp_packets - self._added)
        return metrics, {}


def file_counters(facts: dict[str, Any], drops: DropCounters | None) -> tuple[dict[str, float], dict[str, str]]:
    """(metrics, not_available) from what the file and the capture tool say; the tool's own report goes first."""
    given = drops or DropCounters()
    received = given.received if given.received is not None else facts.get("received")
    dropped = given.dropped
    told = [int(facts[name]) for name in _DROPPED if name in facts]
    if dropped is None and told:
        dropped = sum(told)
    captured = given.captured if given.captured is not None else facts["packets"] if received is not None else None
    counters = {"captured": captured, "received_by_filter": received, "dropped_by_kernel": dropped}
    metrics: dict[str, float] = {name: int(value) for name, value in counters.items() if value is not None}
    missing = {name: _NO_REPORT for name, value in counters.items() if value is None}
    if captured is None or received is None:
        missing["tail_lost"] = _NO_REPORT
    else:
        metrics["tail_lost"] = max(int(received) - min(int(captured), int(facts["packets"])), 0)
    metrics["truncated_tail"] = int(facts["truncated_tail"])
    metrics["unread_bytes"] = int(facts["unread_bytes"])
    return metrics, missing


def judge(counters: dict[str, float], facts: dict[str, Any], *, packets: int, longest_reversal_ns: int) -> Trust:
    """The verdict: every sign that speaks against the capture becomes one reason."""
    remarks = (f"end not verified: {facts['unverified']}",) if facts.get("unverified") else ()
    if packets == 0:
        return Trust(TrustLevel.UNUSABLE, ("the capture holds no packets",), counters, remarks)
    reasons = [reason for reason in _reasons(counters, facts, packets, longest_reversal_ns) if reason]
    dropped = counters.get("dropped_by_kernel", 0)
    nothing_read = facts.get("cut_headers", 0) == packets
    beyond_capacity = any(facts.get(name, 0) for name in _BEYOND_CAPACITY)
    if dropped > UNUSABLE_DROP_SHARE * (dropped + packets) or nothing_read or beyond_capacity:
        return Trust(TrustLevel.UNUSABLE, tuple(reasons), counters, remarks)
    level = TrustLevel.DEGRADED if reasons else TrustLevel.GOOD
    if split := int(counters.get("super_segments", 0) - counters.get(LEFT, 0)):
        level = level if reasons else TrustLevel.ESTIMATED
        reasons.append(_split(split))
    return Trust(level, tuple(reasons), counters, remarks)


def _split(super_segments: int) -> str:
    segments = plural(super_segments, "segment was", "segments were")
    return (
        f"{segments} joined by offloads and split again by the segment size of the handshake: numbers of packets, sizes and "
        f"means are estimated ({uncoalesce.ERROR_IN_WORDS}), times between single packets are not known"
    )


def _reasons(counters: dict[str, float], facts: dict[str, Any], packets: int, longest_reversal_ns: int) -> list[str]:
    def count(name: str) -> int:
        return int(counters.get(name, 0) or facts.get(name, 0))

    def counted(name: str, one: str, many: str, what: str) -> tuple[float, str]:
        return count(name), f"{plural(count(name), one, many)} {what}"

    offloads = "offloads were on, so packet counts and inter-arrival times are not those of the wire"
    unseen = "for data never captured: packets are missing"
    elsewhere = {"fragments": "fragments", "torn_by_networks": "another virtual network"}
    if places := [place for name, place in elsewhere.items() if count(name)]:
        unseen = f"for data that were never captured, or are in {' or '.join(places)}"
    reversals, unread = count("time_reversals"), plural(count("unread_bytes"), "byte")
    backwards = reversals > REVERSAL_SHARE * packets or longest_reversal_ns > REVERSAL_NS
    stamped, longest = plural(reversals, "packet is", "packets are"), amount(longest_reversal_ns / 1e9, "s")
    signs: list[tuple[float, str]] = [
        counted("dropped_by_kernel", "packet was", "packets were", "dropped while capturing"),
        counted(
            "tail_lost",
            "received packet was",
            "received packets were",
            "never written: the tool stopped too early"
            if facts.get("tool_reported", True)
            else "not in the file, by its own statistics: it was filtered afterwards, or the tool stopped too early",
        ),
        counted(LEFT, "segment is", "segments are", f"longer than the wire carries: {offloads}"),
        counted("duplicated_packets", "frame was", "frames were", "captured more than once"),
        counted("acked_unseen_segments", "ACK", "ACKs", unseen),
        (backwards, f"{stamped} stamped earlier than the one before, by up to {longest}"),
        (count("truncated_tail"), facts.get("stream_problem") or f"the file ends inside a record ({unread} not read)"),
        (facts.get("damaged", False), f"the file is damaged: {unread} could not be read"),
        *(counted(name, *words) for name, words in (_LEFT_OUT | _BEYOND_CAPACITY).items()),
    ]
    return [text for sign, text in signs if sign]
