"""The TCP definitions once more, byte by byte in plain Python.

They are those of analysis.traffic.tcp. Sequence numbers of the segments must not wrap here (the kernel's input is
wrapped by ``table_of``), and every list belongs to one connection.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.analysis.segments import ACK, FIN, RST, SYN, Segment


@dataclass
class Side:
    """Counts and times of the segments that one side sent."""

    counts: Counter[str] = field(default_factory=Counter)
    rtt_ns: list[int] = field(default_factory=list)
    response_ns: list[int] = field(default_factory=list)
    in_flight: list[int] = field(default_factory=list)
    windows: list[int] = field(default_factory=list)
    syn_windows: list[int] = field(default_factory=list)
    first_seen_ns: dict[int, int] = field(default_factory=dict)
    """By byte: when it first passed."""
    sent_ns: dict[int, int] = field(default_factory=dict)
    """By byte not acknowledged yet: when it passed last."""
    repeated: set[int] = field(default_factory=set)
    probed: set[int] = field(default_factory=set)
    """Bytes that probes of a closed window alone have carried."""
    highest: int | None = None
    acked: int | None = None
    last_start: int | None = None
    """Sequence number at which the segment begins that ends at ``highest``."""
    wscale: int | None = None
    """None: no SYN seen; -1: its SYN had no such option."""
    last_window: int | None = None
    last_window_scaled: int | None = None
    repeats: int = 0
    unseen_ack_ns: int | None = None
    """When the newest ACK came for bytes that had not passed, until they do."""


def follow(segments: Sequence[Segment]) -> tuple[Side, Side]:
    """Both sides of the one connection that ``segments`` make."""
    sides = (Side(), Side())
    final_ack: list[int] = []
    for segment in segments:
        _follow_one(segment, sides[segment.side], sides[1 - segment.side], final_ack, segments)
    return sides


def _follow_one(segment: Segment, side: Side, peer: Side, final_ack: list[int], everything: Sequence[Segment]) -> None:
    counts, flags, payload = side.counts, segment.flags, segment.payload
    counts["packets"] += 1
    counts["payload_bytes"] += payload
    counts["rsts"] += bool(flags & RST)
    counts["fins"] += bool(flags & FIN)
    counts["pure_acks"] += payload == 0 and flags & (SYN | FIN | RST | ACK) == ACK
    if flags & RST:
        return
    if flags & SYN:
        counts["syns"] += 1
        side.wscale = -1 if segment.wscale == 255 else min(segment.wscale, 14)
    side.highest = segment.seq if side.highest is None else side.highest
    probe = _is_probe(segment, side, peer)
    start = segment.seq + bool(flags & SYN)
    if flags & ACK:
        _acknowledge(segment, side, peer, probe)
    if payload:
        _send(segment, start, side, peer, probe, everything)
    if flags & FIN:
        side.first_seen_ns.setdefault(start + payload, segment.time_ns)
    side.highest = max(side.highest, start + payload + bool(flags & FIN))
    if flags & (ACK | SYN):
        _advertise(segment, side, peer)


def _is_probe(segment: Segment, side: Side, peer: Side) -> bool:
    if segment.flags & (SYN | FIN) or side.acked is None or side.highest is None:
        return False
    closed = peer.last_window == 0
    again = segment.payload == 1 and side.last_start is not None and segment.seq <= side.last_start
    below = segment.payload <= 1 and segment.seq == side.highest - 1 and side.acked >= side.highest and not again
    if below and not closed:
        side.counts["keep_alives"] += 1
        return True
    if closed and (below or (segment.payload > 0 and segment.seq == side.acked)):
        side.counts["zero_window_probes"] += 1
        return True
    return False


def _acknowledge(segment: Segment, side: Side, peer: Side, probe: bool) -> None:
    upto = segment.ack
    if peer.highest is None:
        peer.highest = upto
    if peer.acked is None:
        peer.acked = min([upto, peer.highest, *peer.sent_ns])
    says_nothing_new = segment.payload == 0 and not segment.flags & (SYN | FIN) and segment.window == side.last_window
    if upto == peer.acked and not probe and says_nothing_new and peer.highest > peer.acked:
        side.counts["duplicate_acks"] += 1
        side.repeats += 1
        side.counts["triple_duplicate_acks"] += side.repeats == 3
    if upto <= peer.acked:
        return
    side.repeats = 0
    between = range(min(peer.first_seen_ns, default=upto), upto)
    unseen = any(byte not in peer.first_seen_ns for byte in between if peer.acked <= byte < max(peer.first_seen_ns))
    if upto > peer.highest or unseen:
        side.counts["acked_unseen_segments"] += 1
        peer.unseen_ack_ns = segment.time_ns
    peer.highest = max(peer.highest, upto)
    peer.acked = upto
    covered = {byte: peer.sent_ns.pop(byte) for byte in sorted(peer.sent_ns) if byte < upto}
    clean = [byte for byte in covered if byte not in peer.repeated]
    latest_repeat = max((time for byte, time in covered.items() if byte in peer.repeated), default=-1)
    if not clean or covered[max(clean)] < latest_repeat or segment.time_ns < covered[max(clean)]:
        return
    samples = peer.response_ns if segment.payload or segment.flags & (SYN | FIN) else peer.rtt_ns
    samples.append(segment.time_ns - covered[max(clean)])


def _send(segment: Segment, start: int, side: Side, peer: Side, probe: bool, everything: Sequence[Segment]) -> None:
    counts, seen, time_ns = side.counts, side.first_seen_ns, segment.time_ns
    bytes_sent = range(start, start + segment.payload)
    top = max(seen, default=start - 1) + 1
    overlap = sum(byte in seen for byte in bytes_sent)
    counts["data_segments"] += 1
    counts["goodput_bytes"] += segment.payload - overlap
    if not overlap and side.unseen_ack_ns is not None and 0 <= time_ns - side.unseen_ack_ns <= 1_000_000:
        assert side.acked is not None
        if bytes_sent.stop <= side.acked:
            peer.counts["acked_unseen_segments"] -= 1
            side.unseen_ack_ns = None
    fresh = [byte for byte in bytes_sent if byte not in seen]
    untaken = {byte for byte in side.probed if side.acked is None or byte >= side.acked}
    again = overlap - sum(byte in untaken for byte in bytes_sent)
    side.probed = side.probed.union(fresh) if probe else side.probed.difference(bytes_sent)
    if not probe and again:
        counts["retransmitted_segments"] += 1
        counts["retransmitted_bytes"] += again
    elif not probe and not overlap and start < top:
        counts["out_of_order_segments"] += 1
        visible_ns = min(time for byte, time in seen.items() if byte > start)
        round_trip = min([*side.rtt_ns, *_handshake_ns(segment, everything)], default=None)
        counts["ambiguous_segments"] += round_trip is None or time_ns - visible_ns >= round_trip
    for byte in bytes_sent:
        if side.acked is None or byte >= side.acked:
            if byte < top:
                side.repeated.add(byte)
            side.sent_ns[byte] = time_ns
        seen.setdefault(byte, time_ns)
    assert side.highest is not None
    if bytes_sent.stop > side.highest:
        side.highest, side.last_start = bytes_sent.stop, start
    if side.acked is None:
        return
    side.in_flight.append(max(0, side.highest - side.acked))
    if not probe and peer.last_window_scaled is not None and bytes_sent.stop - side.acked >= peer.last_window_scaled:
        counts["window_full_events"] += 1


def _handshake_ns(until: Segment, everything: Sequence[Segment]) -> list[int]:
    """Return SYN to final ACK if the first three segments are the handshake."""
    if len(everything) < 3:
        return []
    syn, answer, final = everything[:3]
    shape = (syn.flags, answer.flags, final.flags) == (SYN, SYN | ACK, ACK) and final.payload == 0
    return [final.time_ns - syn.time_ns] if shape and until not in (syn, answer, final) else []


def _advertise(segment: Segment, side: Side, peer: Side) -> None:
    side.last_window = segment.window
    if segment.flags & SYN:
        side.syn_windows.append(segment.window)
        side.last_window_scaled = segment.window
        return
    if segment.window == 0 and not segment.flags & FIN:
        side.counts["zero_window_events"] += 1
    side.windows.append(segment.window)
    if segment.window == 0 or -1 in (side.wscale, peer.wscale):
        side.last_window_scaled = segment.window
    elif side.wscale is not None and peer.wscale is not None:
        side.last_window_scaled = segment.window << side.wscale
    else:
        side.last_window_scaled = None
