"""State machines of all connections, in one pass (see analysis.traffic.tcp)."""

from __future__ import annotations

from typing import Any

import numpy as np

from analysis.kernels import inlined, jit
from analysis.kernels import tcp_state as state
from analysis.kernels.opening import end_handshake, open_connection, read_syn, read_window, starts_anew
from analysis.kernels.raw import record_at, signed
from analysis.kernels.segments import acknowledge_bytes, gap_below, node_at, release, see_bytes, send_bytes
from analysis.packets import ACK, CUT, FIN, FRAGMENT, NO_FLOW, NO_TIME, REVERSE, RST, SYN, TCP

_HALF = 1 << 31
_MASK = state.SEQUENCE_SPACE - 1
_GOLDEN = (
    2654435769  # 2**32 / golden ratio: successive ordinals spread evenly, and no period of the traffic can match them
)
_NONE = np.uint32(NO_FLOW)

SIDE_BY_SIDE_NS = 1_000_000
"""Processors that record in parallel reorder packets by less than this."""

sample_at = record_at(state.SAMPLE)


@inlined
def unwrap(number: int, base: int, near: int) -> int:
    """Return the offset from ``base`` that is closest to ``near``."""
    return near + ((number - base - near + _HALF) & _MASK) - _HALF


@inlined
def log_sample(store: Any, series: int, ordinal: int, value: int) -> None:
    draw = (ordinal * _GOLDEN) & _MASK
    if draw < store.draw_limit:
        sample = sample_at(store.samples, store.sample_room, store.samples_used)
        sample.series = series
        sample.draw = draw
        sample.value = value
        store.samples_used += 1


@jit
def thin_samples(samples: Any, draw_limit: int) -> int:
    """Move the samples below ``draw_limit`` to the front and return their number.

    The choice depends on the ordinal of a sample only, not on the chunks.
    """
    remaining = 0
    for i in range(len(samples)):
        samples[remaining] = samples[i]
        remaining += samples[i].draw < draw_limit  # without a branch, which would be mispredicted half of the time
    return remaining


@jit
def _repeats_ack(side: Any, peer: Any, flags: int, payload: int, window: int) -> None:
    """Count a duplicate ACK if the segment has no other content."""
    if payload == 0 and not flags & (SYN | FIN) and window == side.last_window and peer.highest > peer.acked:
        side.duplicate_acks += 1
        side.repeats += 1
        if side.repeats == 3:
            side.triple_duplicate_acks += 1


@inlined
def _read_ack(
    side: Any, peer: Any, store: Any, series: int,
    flags: int, payload: int, ack: int, window: int, probe: bool, time_ns: int,
) -> None:  # fmt: skip
    """Read an ACK of ``side`` for bytes of ``peer``, whose RTT series is ``series``."""
    if peer.base == state.UNKNOWN:
        peer.base = ack
        peer.highest = 0
    upto = unwrap(ack, peer.base, peer.highest)
    if not peer.acked_known:
        peer.acked_known = 1
        peer.acked = min(upto, peer.highest)
        if peer.oldest != state.NO_NODE:
            peer.acked = min(peer.acked, node_at(store.nodes, store.node_room, peer.oldest).start)
    if upto == peer.acked and not probe:
        _repeats_ack(side, peer, flags, payload, window)
    if upto <= peer.acked:
        return
    side.repeats = 0
    if upto > peer.highest or (peer.runs_below != state.NO_NODE and gap_below(peer, store, peer.acked, upto)):
        side.acked_unseen_segments += 1
        peer.unseen_ack_ns = time_ns
    peer.highest = max(peer.highest, upto)
    peer.acked = upto
    sent_ns = acknowledge_bytes(peer, store, upto)
    if sent_ns == NO_TIME or time_ns < sent_ns:
        return
    if payload > 0 or flags & (SYN | FIN):
        log_sample(store, series + 2 * state.RESPONSE_NS, peer.response_samples, time_ns - sent_ns)
        peer.response_samples += 1
        return
    log_sample(store, series + 2 * state.RTT_NS, peer.rtt_samples, time_ns - sent_ns)
    peer.rtt_samples += 1
    if peer.rtt_min_ns == state.UNKNOWN or time_ns - sent_ns < peer.rtt_min_ns:
        peer.rtt_min_ns = time_ns - sent_ns


@inlined
def _is_probe(side: Any, peer: Any, flags: int, payload: int, start: int) -> bool:
    """Count keep-alives and zero-window probes; return True for either.

    A repeated last segment of one byte is no keep-alive: its ACK may have been lost after the capture point.
    """
    if flags & (SYN | FIN) or not side.acked_known:
        return False
    below = start == side.highest - 1 and side.acked >= side.highest
    below = below and (payload == 0 or (payload == 1 and start > side.last_start))
    closed = peer.last_window == 0
    if below and not closed:
        side.keep_alives += 1
    elif closed and (below or (payload > 0 and start == side.acked)):
        side.zero_window_probes += 1
    else:
        return False
    return True


@jit
def _is_reordering_certain(connection: Any, side: Any, peer: Any, time_ns: int) -> bool:
    """Return True for a gap filled within a round trip, before a loss is noticed."""
    bound = side.rtt_min_ns
    if connection.final_ack_ns != NO_TIME and side.syn_ns != NO_TIME and peer.syn_ns != NO_TIME:
        handshake_ns = connection.final_ack_ns - min(side.syn_ns, peer.syn_ns)
        bound = handshake_ns if bound == state.UNKNOWN else min(bound, handshake_ns)
    return bool(bound != state.UNKNOWN and side.gap_opened_ns != NO_TIME and time_ns - side.gap_opened_ns < bound)


@jit
def _take_back_unseen(side: Any, peer: Any, end: int, time_ns: int) -> None:
    """Uncount an unseen ACK if its bytes are recorded right after it.

    A bridge forwards a frame before it is recorded, and the answer may be recorded on another processor.
    """
    if side.unseen_ack_ns == NO_TIME or time_ns == NO_TIME or not 0 <= time_ns - side.unseen_ack_ns <= SIDE_BY_SIDE_NS:
        return
    if end <= side.acked:
        peer.acked_unseen_segments -= 1
        side.unseen_ack_ns = NO_TIME


@inlined
def _sent_again(side: Any, start: int, end: int, fresh: int, overlap: int, probe: bool) -> int:
    """Return the retransmitted bytes of ``overlap``, without those of probes."""
    if probe:
        if overlap < end - start:
            begin = max(start, fresh) if overlap > 0 else start
            side.probe_start = side.probe_start if side.probe_end == begin else begin
            side.probe_end = end
        return 0
    taken = side.acked if side.acked_known else side.probe_start
    begin = max(side.probe_start, taken)
    known_by_probe = max(0, min(end, side.probe_end) - max(start, begin))
    if known_by_probe > 0:
        if start > side.probe_start:
            side.probe_end = start
        else:
            side.probe_start = end
    return signed(max(overlap - known_by_probe, 0))


@inlined
def _read_data(
    connection: Any, side: Any, peer: Any, store: Any, series: int,
    payload: int, start: int, probe: bool, time_ns: int,
) -> None:  # fmt: skip
    """Read the payload of ``side``, whose RTT series is ``series``."""
    end = start + payload
    fresh = side.run_end if side.runs else start
    side.data_segments += 1
    overlap = see_bytes(side, store, start, end, time_ns)
    side.goodput_bytes += payload - overlap
    if overlap == 0:
        _take_back_unseen(side, peer, end, time_ns)
    again = _sent_again(side, start, end, fresh, overlap, probe)
    if not probe:
        if again > 0:
            side.retransmitted_segments += 1
            side.retransmitted_bytes += again
        elif overlap == 0 and start < fresh:
            side.out_of_order_segments += 1
            if not _is_reordering_certain(connection, side, peer, time_ns):
                side.ambiguous_segments += 1
    send_bytes(side, store, start, end, fresh, time_ns)
    if end > side.highest:
        side.highest = end
        side.last_start = start
    if not side.acked_known:
        return
    in_flight = max(0, side.highest - side.acked)
    side.in_flight_max = max(side.in_flight_max, in_flight)
    log_sample(store, series + 2 * state.IN_FLIGHT_BYTES, side.data_segments, in_flight)
    if not probe and peer.last_window_bytes != state.UNKNOWN and end - side.acked >= peer.last_window_bytes:
        side.window_full_events += 1


@inlined
def _count_packet(connection: Any, side: Any, flags: int, wire: int, payload: int, time_ns: int) -> bool:
    """Count volume and lifetime; return True for a pure ACK."""
    side.packets += 1
    side.wire_bytes += wire
    side.payload_bytes += payload
    if time_ns != NO_TIME:
        if connection.first_ns == NO_TIME or time_ns < connection.first_ns:
            connection.first_ns = time_ns
        connection.last_ns = max(connection.last_ns, time_ns)
    pure = payload == 0 and flags & (ACK | SYN | FIN | RST) == ACK
    if pure:
        side.pure_acks += 1
    if flags & RST:
        side.rsts += 1
    if flags & FIN:
        side.fins += 1
    return pure


@inlined
def _read_packet(
    connection: Any, side: Any, peer: Any, store: Any, index: int, direction: int,
    time_ns: int, wire: int, payload: int, seq: int, ack: int, window: int, flags: int, wscale: int, cut: bool,
) -> None:  # fmt: skip
    pure = _count_packet(connection, side, flags, wire, payload, time_ns)
    if flags & RST:  # often forged: its numbers are not reliable
        return
    if flags & SYN:
        read_syn(connection, side, direction, flags, seq, wscale, cut, time_ns)
    elif connection.handshake == state.HANDSHAKE_SYN_ACK:
        end_handshake(connection, side, peer, direction, pure, ack, time_ns)
    if side.base == state.UNKNOWN:
        side.base = seq
        side.highest = 0
    series = 2 * state.SERIES * index
    start = unwrap(seq, side.base, side.highest)
    probe = (payload <= 1 or peer.last_window == 0) and _is_probe(side, peer, flags, payload, start)
    if flags & SYN:
        start += 1
    if flags & ACK:
        mirror = series + 1 - direction
        _read_ack(side, peer, store, mirror, flags, payload, ack, window, probe, time_ns)
    if payload > 0:
        mine = series + direction
        _read_data(connection, side, peer, store, mine, payload, start, probe, time_ns)
    if flags & FIN:  # it shows missing bytes below it, like a byte of data
        see_bytes(side, store, start + payload, start + payload + 1, time_ns)
    side.highest = max(side.highest, start + payload + (1 if flags & FIN else 0))
    if flags & (ACK | SYN) and not (cut and window == 0):
        read_window(side, peer, flags, window)


@jit
def _reopen(connections: Any, sides: Any, store: Any, flow: int, index: int) -> int:
    """Open a connection in place of ``index``; return UNKNOWN at the capacity."""
    if index >= 0:
        release(sides[2 * index], store)
        release(sides[2 * index + 1], store)
    if store.connections == len(connections):
        store.untracked += 1
        return state.UNKNOWN
    return open_connection(connections, sides, store, flow)


@jit
def follow_packets(
    first: int, time_ns: Any, orig_len: Any, kind: Any, flow: Any, payload: Any, seq: Any, ack: Any, window: Any,
    tcp_flags: Any, wscale: Any, skip: Any, current: Any, connections: Any, sides: Any, stores: Any, connection_of: Any,
) -> int:  # fmt: skip
    """Process rows from ``first``; return N, or the row that needs sample room.

    ``current`` is the number of each flow's connection + 1, 0 without one. State is passed as records and addresses: numba arrays cost
    two atomic reference counts per call, which were two thirds of the pass (260 ns per packet).
    """
    store = stores[0]
    for i in range(first, len(time_ns)):
        connection_of[i] = _NONE
        if not kind[i] & TCP or kind[i] & FRAGMENT or flow[i] == _NONE or (len(skip) and skip[i]):
            continue
        flags = signed(tcp_flags[i])
        cut = kind[i] & CUT != 0
        if flags == 0 and cut:
            continue
        if store.samples_used + state.SAMPLES_PER_PACKET > store.sample_room:
            return i
        direction = 1 if kind[i] & REVERSE else 0
        index = signed(current[flow[i]]) - 1
        if index == state.UNKNOWN or (
            flags & (SYN | RST) == SYN
            and starts_anew(
                sides[2 * index + direction], sides[2 * index + 1 - direction], flags, signed(seq[i]), signed(ack[i])
            )
        ):
            index = _reopen(connections, sides, store, signed(flow[i]), index)
            current[flow[i]] = index + 1
        if index == state.UNKNOWN:
            continue
        connection_of[i] = index
        _read_packet(
            connections[index], sides[2 * index + direction], sides[2 * index + 1 - direction], store, index, direction,
            time_ns[i], signed(orig_len[i]), signed(payload[i]), signed(seq[i]), signed(ack[i]),
            signed(window[i]), flags, signed(wscale[i]), cut,
        )  # fmt: skip
    return len(time_ns)
