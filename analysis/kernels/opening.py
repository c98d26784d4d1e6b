"""Opening of connections: initial state, SYNs, the handshake, and windows."""

from __future__ import annotations

from typing import Any

from analysis.kernels import inlined, jit
from analysis.kernels import tcp_state as state
from analysis.kernels.raw import signed
from analysis.packets import ACK, FIN, NO_SCALE, NO_TIME, SYN

_MASK = state.SEQUENCE_SPACE - 1
_MAX_SHIFT = 14  # RFC 7323 section 2.3: a larger shift counts as 14
_NO_OPTION = int(NO_SCALE)


@jit
def open_connection(connections: Any, sides: Any, store: Any, flow: int) -> int:
    index = store.connections
    store.connections = index + 1
    connection = connections[index]
    connection.flow = flow
    connection.initiator = state.UNKNOWN
    connection.handshake = state.HANDSHAKE_NONE
    connection.first_ns = NO_TIME
    connection.last_ns = NO_TIME
    connection.final_ack_ns = NO_TIME
    connection.jobid = state.UNKNOWN
    for k in range(2 * index, 2 * index + 2):
        side = sides[k]
        side.isn = state.UNKNOWN
        side.base = state.UNKNOWN
        side.oldest = state.NO_NODE
        side.newest = state.NO_NODE
        side.runs_below = state.NO_NODE
        side.last_window = state.UNKNOWN
        side.last_window_bytes = state.UNKNOWN
        side.wscale = state.NO_SYN
        side.last_start = -state.SEQUENCE_SPACE
        side.window_min = state.SEQUENCE_SPACE
        side.syn_window_min = state.SEQUENCE_SPACE
        side.syn_ns = NO_TIME
        side.unseen_ack_ns = NO_TIME
        side.rtt_min_ns = state.UNKNOWN
        side.in_flight_max = state.UNKNOWN
        side.vpid = state.UNKNOWN
    return signed(index)


@jit
def starts_anew(side: Any, peer: Any, flags: int, seq: int, ack: int) -> bool:
    """Return True if this SYN opens another connection on used ports: its ISN is new."""
    if side.isn == seq:
        return False
    if flags & ACK:  # a SYN with data (TCP Fast Open) may be acknowledged with any part of them
        answers = peer.isn != state.UNKNOWN and 1 <= ((ack - peer.isn) & _MASK) <= max(1, peer.highest)
        return bool(not (answers and side.payload_bytes == 0) and side.packets + peer.packets > 0)
    if side.isn != state.UNKNOWN:
        return True
    return bool(side.packets > 0 or peer.packets > peer.syns)


@jit
def read_syn(
    connection: Any, side: Any, direction: int, flags: int, seq: int, wscale: int, cut: bool, time_ns: int
) -> None:
    side.syns += 1
    if side.isn != seq:
        side.isn = seq
        side.base = seq
        side.highest = 0
        side.last_start = -state.SEQUENCE_SPACE
        side.acked_known = 0
        side.probe_end = 0
    if side.syn_ns == NO_TIME:
        side.syn_ns = time_ns
    if not cut:
        side.wscale = state.UNKNOWN if wscale == _NO_OPTION else min(wscale, _MAX_SHIFT)
    if flags & ACK:
        if connection.initiator == state.UNKNOWN:
            connection.initiator = 1 - direction
        if connection.handshake == state.HANDSHAKE_SYN:
            connection.handshake = state.HANDSHAKE_SYN_ACK
    elif connection.initiator == state.UNKNOWN:
        connection.initiator = direction
        connection.handshake = state.HANDSHAKE_SYN


@jit
def end_handshake(connection: Any, side: Any, peer: Any, direction: int, pure: bool, ack: int, time_ns: int) -> None:
    """Read the initiator's first packet after the SYN+ACK."""
    if direction != connection.initiator:
        return
    timed = pure and ack == ((peer.isn + 1) & _MASK) and side.syns == 1 and peer.syns == 1
    if timed:
        connection.final_ack_ns = time_ns
    connection.handshake = state.HANDSHAKE_DONE if timed else state.HANDSHAKE_UNTIMED


@inlined
def read_window(side: Any, peer: Any, flags: int, window: int) -> None:
    """Record the advertised window, unscaled in SYNs."""
    if flags & SYN:
        side.syn_window_sum += window
        side.syn_window_count += 1
        side.syn_window_min = min(side.syn_window_min, window)
        side.last_window = window
        side.last_window_bytes = window
        return
    side.window_sum += window
    side.window_count += 1
    side.window_min = min(side.window_min, window)
    side.last_window = window
    side.last_window_bytes = scaled_window(side, peer, window)
    if window == 0 and not flags & FIN:
        side.zero_window_events += 1


@inlined
def scaled_window(side: Any, peer: Any, window: int) -> int:
    """Return the bytes of the field ``window``; UNKNOWN if a SYN is missing."""
    if window <= 0:
        return window
    if side.wscale == state.UNKNOWN or peer.wscale == state.UNKNOWN:
        return window
    if side.wscale != state.NO_SYN and peer.wscale != state.NO_SYN:
        return signed(window << side.wscale)
    return state.UNKNOWN
