"""How far a capture may be believed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from analysis.kernels import trust as kernel
from analysis.memory import reserved
from analysis.numbers import amount, grouped, plural
from analysis.packets import MOST_FLOWS, MOST_HOSTS, RST, SYN, PacketTable
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
_DROPPED: Final = ("dropped", "dropped_by_interface")
"""Counts of statistics blocks."""
LEFT: Final = "super_segments_left"
"""Counter: those that cannot be split, because no segment size is known or they are not TCP."""
_NO_REPORT: Final = "the capture tool's own report was not given and the file holds no statistics"

_LEFT_OUT: Final = {
    "cut_headers": ("packet", "with truncated or contradictory headers: their content is excluded"),
    "fragments": ("later IP fragment", "whose payload is in no connection"),
    "hidden": ("packet", "with encrypted data or an unsupported encapsulation: try --decoder pyshark"),
    "beyond_frame": ("packet", "with a length field beyond the end of the frame"),
    "undefined_interface": ("packet", "of an interface that the file does not define"),
    "odd_stamps": ("packet", "with an impossible time (two seconds or more in its fraction, or beyond the years 1824 to 2115)"),
    "gaps_forgotten": ("gap", "in sequence numbers that did not fit into memory"),
    "segments_forgotten": ("unacknowledged segment", "that did not fit into memory: round trips are missing"),
    "queue_pairs_beyond_limit": ("packet", "of RoCEv2 queue pairs beyond the limit: their retransmissions are unknown"),
}  # fmt: skip
"""What the metrics exclude, by its count among the facts, as noun and rest of a reason; never with trust "good"."""
_BEYOND_CAPACITY: Final = {
    "addresses_not_kept": ("address lookup", f"without room in the table of hosts (capacity: {grouped(MOST_HOSTS)})"),
    "packets_beyond_flow_limit": ("packet", f"of flows without room in their table (capacity: {grouped(MOST_FLOWS)})"),
    "untracked_packets": ("packet", f"of connections that are not followed (capacity: {grouped(MOST_FLOWS)})"),
    "missed_by_pairs": ("byte", "of pairs of hosts without room in the host matrix"),
}
"""What makes a capture unusable: metrics of hosts and connections are those of a part."""


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
        on_the_wire, duplicate = uncoalesce.split(
            table, self._pieces(table, self._announced, self._counters), duplicate
        )
        self._added += len(on_the_wire) - len(table)
        return on_the_wire, duplicate

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
        return {"cut_headers": cut, "fragments": fragments}

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

    def counted(name: str, noun: str, what: str) -> tuple[float, str]:
        return count(name), f"{plural(count(name), noun)} {what}"

    offloads = "offloads were on, so packet counts and inter-arrival times are not those of the wire"
    unseen = "for data never captured: packets are missing"
    if count("fragments"):
        unseen = "for data that were never captured, or are in fragments"
    tail = "not in the file, by its own statistics: it was filtered afterwards, or the tool stopped too early"
    if facts.get("tool_reported", True):
        tail = "not written: the tool stopped too early"
    reversals, unread = count("time_reversals"), plural(count("unread_bytes"), "byte")
    backwards = reversals > REVERSAL_SHARE * packets or longest_reversal_ns > REVERSAL_NS
    stamped, longest = plural(reversals, "packet"), amount(longest_reversal_ns / 1e9, "s")
    signs: list[tuple[float, str]] = [
        counted("dropped_by_kernel", "packet", "dropped during capture"),
        counted("tail_lost", "received packet", tail),
        counted(LEFT, "segment", f"longer than the wire carries: {offloads}"),
        counted("duplicated_packets", "frame", "captured more than once"),
        counted("acked_unseen_segments", "ACK", unseen),
        (backwards, f"{stamped} stamped earlier than the one before, by up to {longest}"),
        (count("truncated_tail"), facts.get("stream_problem") or f"the file ends inside a record ({unread} not read)"),
        (facts.get("damaged", False), f"the file is damaged: {unread} could not be read"),
        *(counted(name, *words) for name, words in (_LEFT_OUT | _BEYOND_CAPACITY).items()),
    ]
    return [text for sign, text in signs if sign]
