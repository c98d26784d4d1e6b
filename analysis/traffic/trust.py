"""Trust in a capture: its verdict, reasons and counters."""

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
"""Processors that stamp in parallel reorder packets by microseconds; a larger reversal is a clock that was set."""
_LINK_LAYER: Final = 14 + 2 * 4
"""Ethernet with two VLAN tags: frames longer than MTU + this were joined."""
_HEADERS: Final = 40
_RING: Final = 1 << 12
_DROPPED: Final = ("dropped", "dropped_by_interface")
"""Counts of statistics blocks."""
LEFT: Final = "super_segments_left"
"""Counter: coalesced segments that cannot be split, without segment size or not TCP."""
_NO_REPORT: Final = "no report of the capture tool, and no statistics in the file"

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
"""Exclusions of the metrics: name of the count -> noun and rest of a reason. Each lowers the trust below "good"."""
_BEYOND_CAPACITY: Final = {
    "addresses_not_kept": ("address lookup", f"without room in the table of hosts (capacity: {grouped(MOST_HOSTS)})"),
    "packets_beyond_flow_limit": ("packet", f"of flows without room in their table (capacity: {grouped(MOST_FLOWS)})"),
    "untracked_packets": ("packet", f"of connections that are not followed (capacity: {grouped(MOST_FLOWS)})"),
    "missed_by_pairs": ("byte", "of pairs of hosts without room in the host matrix"),
}
"""Reasons of an unusable capture: its metrics of hosts and connections are those of a part."""


@dataclass(frozen=True, slots=True)
class DropCounters:
    """Report of the capture tool, not in the file; None for missing counters."""

    captured: int | None = None
    received: int | None = None
    dropped: int | None = None


@dataclass(frozen=True, slots=True)
class Trust:
    """The verdict on a capture, its reasons and counters (catalogue section "trust")."""

    verdict: TrustLevel
    reasons: tuple[str, ...]
    counters: dict[str, float]
    remarks: tuple[str, ...] = ()
    """Facts that could not be verified, without effect on the verdict."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "reasons": list(self.reasons),
            "remarks": list(self.remarks),
            "counters": dict(self.counters),
        }


class TrustAccumulator:
    """Finds duplicate frames and coalesced segments, table by table."""

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
        """Add a table; return it as on the wire (uncoalesce), and marks of duplicates."""
        duplicate = np.empty(len(table), np.bool_)
        duplicates, self._pushed = kernel.duplicates(
            table.time_ns, table.kind, table.flow, table.payload, table.seq, table.ack, table.fingerprint,
            self._heads, self._links, self._times, self._words, self._pushed, duplicate,
        )  # fmt: skip
        if duplicates and not np.any(table.tcp_flags[duplicate] & (SYN | RST) == 0):
            # Linux gives every SYN-ACK the IP id 0 and repeats it if the SYN is repeated; a closed socket answers every late segment
            # with the same RST, with id 0, too. These are no duplicates. A capture with duplicates has others than these.
            duplicate[:] = False
            duplicates = 0
        self._duplicates += duplicates
        on_the_wire, duplicate = uncoalesce.split(
            table, self._pieces(table, self._announced, self._counters), duplicate
        )
        self._added += len(on_the_wire) - len(table)
        return on_the_wire, duplicate

    def again(self, table: PacketTable) -> PacketTable:
        """Return the table as ``update`` did, when a capture is read a second time.

        Announced segment sizes are collected again, so that segments before their SYN are not split.
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
        """True if rows were added that were no frames of the capture."""
        return self._added > 0

    def left_out(self) -> dict[str, int]:
        """Return the packets without a usable transport header."""
        cut, fragments = self._counters[[kernel.CUT_HEADERS, kernel.FRAGMENTS]].tolist()
        return {"cut_headers": cut, "fragments": fragments}

    def counters(self, packets: int, tcp_packets: int) -> tuple[dict[str, float], dict[str, str]]:
        """Return (metrics, not_available) for coalesced segments and duplicates."""
        metrics: dict[str, float] = {"duplicated_packets": self._duplicates}
        ids = ("super_segments", "super_segment_share", "wire_packets_estimated")
        judged, unjudged = int(self._counters[kernel.JUDGED]), int(self._counters[kernel.UNJUDGED])
        if unjudged and not judged:
            return metrics, dict.fromkeys(
                ids, "no SYN captured and no MTU specified, so the limit of segments is unknown"
            )
        metrics["super_segments"] = int(self._counters[kernel.SUPER])
        metrics[LEFT] = metrics["super_segments"] - int(self._counters[kernel.SPLIT])
        metrics["wire_packets_estimated"] = packets
        if not tcp_packets:
            return metrics, {"super_segment_share": "no TCP packets"}
        metrics["super_segment_share"] = metrics["super_segments"] / (tcp_packets - self._added)
        return metrics, {}


def file_counters(facts: dict[str, Any], drops: DropCounters | None) -> tuple[dict[str, float], dict[str, str]]:
    """Return (metrics, not_available) of the capture tool's report, else of the file."""
    report = drops or DropCounters()
    received = report.received if report.received is not None else facts.get("received")
    dropped = report.dropped
    in_file = [int(facts[name]) for name in _DROPPED if name in facts]
    if dropped is None and in_file:
        dropped = sum(in_file)
    captured = report.captured if report.captured is not None else facts["packets"] if received is not None else None
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
    """Return the verdict, with one reason per sign of a defect."""
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
        f"means are estimated ({uncoalesce.ERROR_IN_WORDS}), times between single packets are unknown"
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
    cut, damaged = (
        f"the file ends inside a record ({unread} not read)",
        f"the file is damaged: {unread} could not be read",
    )
    if facts.get("unread_zeros"):
        cut = damaged = f"{plural(count('unread_bytes'), 'zero byte')} at the end: the file was not written to its end"
    signs: list[tuple[float, str]] = [
        counted("dropped_by_kernel", "packet", "dropped during capture"),
        counted("tail_lost", "received packet", tail),
        counted(LEFT, "segment", f"longer than the wire carries: {offloads}"),
        counted("duplicated_packets", "frame", "captured more than once"),
        counted("acked_unseen_segments", "ACK", unseen),
        (backwards, f"{stamped} stamped earlier than the one before, by up to {longest}"),
        (count("truncated_tail"), facts.get("stream_problem") or cut),
        (facts.get("damaged", False), damaged),
        *(counted(name, *words) for name, words in (_LEFT_OUT | _BEYOND_CAPACITY).items()),
    ]
    return [text for sign, text in signs if sign]
