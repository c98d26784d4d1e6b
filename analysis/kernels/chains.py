"""Critical path of messages, in one pass (definitions: analysis.traffic.chains)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from analysis.kernels import inlined, jit
from analysis.kernels.raw import record_at, signed
from analysis.packets import ACK, FIN, FRAGMENT, NO_FLOW, NO_TIME, REVERSE, RST, SYN, TCP

CHAIN: Final = np.dtype(
    [
        ("latency_ns", np.int64), ("volume_ns", np.int64), ("retransmission_ns", np.int64), ("messages", np.int64),
        ("end_ns", np.int64), ("owed_ns", np.int64),
    ],
    align=True,
)  # fmt: skip
"""``end_ns``: the end of the explained time; parts are cut at the packet that they explain. ``owed_ns``: volume that came sooner than
the link's rate allows, because an idle link may transmit a burst and pause afterwards."""

HOST: Final = np.dtype(
    [
        ("sent", CHAIN), ("heard", CHAIN), ("into", CHAIN),
        ("turn_ns", np.int64), ("sent_ns", np.int64), ("sent_way", np.int64), ("heard_ns", np.int64),
        ("first", np.int64), ("count", np.int64), ("began_ns", np.int64),
    ],
    align=True,
)  # fmt: skip
"""Chains of the last data sent, of the data heard and of the data received by the port; ``turn_ns`` from the capture point to the
host and back, smallest of its handshakes, UNKNOWN before the first; ``sent_way`` direction of the last data. Arrivals in transit to
it: index of the oldest in its ring, count, start of the newest. Copies are deferred, because they were half of the work: the newest
arrival has the chain ``into``, the data of ``sent_way`` the chain ``sent``."""

ARRIVAL: Final = np.dtype([("chain", CHAIN), ("time_ns", np.int64)], align=True)
PENDING: Final = 32
"""Arrivals in transit to one host; a power of two."""

WAY: Final = np.dtype(
    [("data", CHAIN), ("acked", CHAIN), ("last_ns", np.int64), ("ack_ns", np.int64), ("highest", np.int64)], align=True
)
"""One direction of a flow: the chain of its last data, and of the first pure ACK after them."""

HAND: Final = np.dtype([("syn_ns", np.int64), ("syn_ack_ns", np.int64), ("initiator", np.int64)], align=True)
"""A flow's handshake."""

UNKNOWN: Final = -1
_NEVER = NO_TIME

arrival_at = record_at(ARRIVAL)
"""An array instead costs atomic reference counts in functions with several exits: a fifth of the time (kernels.raw)."""

_NEARLY = 0.9
"""A wait of this share of the turn counts as one: arrivals are grouped by sixteenths of it, and stamps scatter."""
_KEPT_APART = 16
_PROMPTLY = 1.25
_WORTH = 0.5
"""A wait for heard data must explain this share of a turn more than the host's own packets."""
_BEHIND = 1.5
"""A packet within this multiple of its transmission time after another one has queued behind it."""
_HALF = 1 << 31
_MASK = (1 << 32) - 1


@inlined
def explained_ns(chain: Any) -> int:
    return signed(chain.latency_ns + chain.volume_ns + chain.retransmission_ns)


@inlined
def _copy(source: Any, target: Any) -> None:
    target.latency_ns = source.latency_ns
    target.volume_ns = source.volume_ns
    target.retransmission_ns = source.retransmission_ns
    target.messages = source.messages
    target.end_ns = source.end_ns
    target.owed_ns = source.owed_ns


@inlined
def _carry(chain: Any, needs_ns: int, burst_ns: int, now: int) -> None:
    """Add a packet as far as the elapsed time allows; owe up to ``burst_ns``."""
    due_ns = needs_ns + chain.owed_ns
    paid_ns = max(min(due_ns, now - chain.end_ns), 0)
    chain.volume_ns += paid_ns
    chain.owed_ns = min(due_ns - paid_ns, burst_ns)
    chain.end_ns = now


@jit
def _wait(source: Any, target: Any, heard: bool, wait_ns: int, now: int) -> None:
    """Set ``target`` to ``source`` and a wait: for ``heard`` data or a time-out.

    Data that the port had not yet received when the wait began are subtracted: the host continued without them.
    """
    _copy(source, target)
    target.owed_ns = 0
    target.volume_ns -= max(source.end_ns - (now - wait_ns), 0)
    target.end_ns = min(source.end_ns + wait_ns, now)
    if heard:
        target.latency_ns += wait_ns
        target.messages += 1
    else:
        target.retransmission_ns += wait_ns


@jit
def _adopt(source: Any, target: Any, heard: bool, wait_ns: int, worth_ns: float, now: int) -> None:
    """Wait for ``source`` if that explains ``worth_ns`` more than ``target``."""
    too_long_ns = max(source.end_ns - (now - wait_ns), 0)
    if explained_ns(source) - too_long_ns + wait_ns > explained_ns(target) + worth_ns:
        _wait(source, target, heard, wait_ns, now)


@inlined
def _hear(host: Any, pending: int, room: int, s: int, now: int) -> None:
    """Move arrivals at host ``s`` by ``now`` from its ring to its chain ``heard``."""
    wait_ns = _NEARLY * host.turn_ns
    while host.count > 0:
        arrival = arrival_at(pending, room, s * PENDING + host.first)
        if host.count < PENDING and now - arrival.time_ns < wait_ns:
            return
        chain = arrival.chain if host.count > 1 else host.into
        if host.heard_ns == _NEVER or explained_ns(chain) >= explained_ns(host.heard):
            _copy(chain, host.heard)
            host.heard_ns = arrival.time_ns
        host.first = (host.first + 1) & (PENDING - 1)
        host.count -= 1


@inlined
def _arrive(host: Any, pending: int, room: int, d: int, chain: Any, needs_ns: int, now: int) -> None:
    """Add an arrival with ``chain`` at host ``d``, after data of its port."""
    into = host.into
    if host.count == 0 or (now - host.began_ns) * _KEPT_APART >= max(host.turn_ns, 0):
        if host.count > 0:
            _copy(into, arrival_at(pending, room, d * PENDING + ((host.first + host.count - 1) & (PENDING - 1))).chain)
        if host.count == PENDING:
            _hear(host, pending, room, d, now)
        host.count += 1
        host.began_ns = now
    arrival_at(pending, room, d * PENDING + ((host.first + host.count - 1) & (PENDING - 1))).time_ns = now
    into.end_ns = max(into.end_ns, now - needs_ns) + needs_ns
    into.volume_ns += needs_ns
    if explained_ns(chain) >= explained_ns(into):
        _copy(chain, into)


@inlined
def _is_sent_again(way: Any, end: int, payload: int, now: int, round_trip_ns: float) -> bool:
    """Return True for data below the highest byte, later than a round trip.

    One byte just below the highest is a keep-alive, or a probe of a closed window.
    """
    if way.highest == UNKNOWN or way.last_ns == _NEVER or now - way.last_ns < round_trip_ns:
        return False
    beyond = ((end - way.highest + _HALF) & _MASK) - _HALF
    return bool(beyond <= 0 and not (payload <= 1 and beyond == 0))


@inlined
def _send(host: Any, way: Any, last: Any, w: int, needs_ns: int, burst_ns: int, again: bool, now: int) -> None:
    """Extend the longest chain that a data packet can have waited for."""
    chain = host.sent
    if host.sent_way != w:
        if host.sent_way != UNKNOWN:
            _copy(chain, last.data)
        host.sent_way = w
    elif again:
        _copy(chain, way.data)
    turn_ns, worth_ns = host.turn_ns, _WORTH * host.turn_ns
    waited = turn_ns != UNKNOWN and (way.last_ns == _NEVER or now - way.last_ns >= _NEARLY * turn_ns)
    if waited and (host.sent_ns == _NEVER or now - host.sent_ns > _BEHIND * needs_ns):
        if host.heard_ns != _NEVER:
            _adopt(host.heard, chain, True, min(turn_ns, now - host.heard_ns), worth_ns, now)
        since = now - way.ack_ns if way.ack_ns != _NEVER else UNKNOWN
        stalled = now - host.sent_ns > turn_ns + 2 * _BEHIND * needs_ns
        if stalled and _NEARLY * turn_ns <= since <= _PROMPTLY * turn_ns + needs_ns:
            _adopt(way.acked, chain, True, min(turn_ns, since), worth_ns, now)
    if again:
        _adopt(way.data, chain, False, now - way.last_ns, 0.0, now)
    _carry(chain, needs_ns, burst_ns, now)
    host.sent_ns = now
    way.last_ns = now


@inlined
def _acknowledge(host: Any, peer: Any, now: int) -> None:
    """Record the first pure ACK after the peer's last data."""
    waits = peer.last_ns != _NEVER and (peer.ack_ns == _NEVER or peer.ack_ns < peer.last_ns)
    if waits and host.heard_ns != _NEVER and host.turn_ns != UNKNOWN:
        peer.ack_ns = now
        _wait(host.heard, peer.acked, True, min(host.turn_ns, now - host.heard_ns), now)


@jit
def _measure_turn(host: Any, since_ns: int, now: int) -> None:
    turn_ns = max(now - since_ns, 0)
    if host.turn_ns == UNKNOWN or turn_ns < host.turn_ns:
        host.turn_ns = turn_ns


@jit
def _shake_hands(hand: Any, sender: Any, direction: int, flags: int, now: int) -> None:
    """Time both halves of a handshake without repeated packets."""
    if flags & SYN and not flags & ACK:
        first = hand.syn_ns == _NEVER or hand.syn_ack_ns != _NEVER
        hand.syn_ns = now if first else _NEVER
        hand.syn_ack_ns = _NEVER
        hand.initiator = direction
    elif flags & SYN:
        if hand.syn_ns != _NEVER and hand.initiator != direction:
            _measure_turn(sender, hand.syn_ns, now)
            hand.syn_ack_ns = now
        hand.syn_ns = _NEVER
    elif hand.syn_ack_ns != _NEVER and hand.initiator == direction:
        _measure_turn(sender, hand.syn_ack_ns, now)
        hand.syn_ack_ns = _NEVER


@jit
def follow_chains(
    kind: Any, time_ns: Any, src: Any, dst: Any, flow: Any, orig_len: Any, payload: Any, seq: Any, tcp_flags: Any, skip: Any,
    hosts: Any, pending: int, room: int, hands: Any, ways: Any, ns_per_byte: float, burst_ns: int,
) -> None:  # fmt: skip
    """Follow packets of hosts and flows that the arrays have room for.

    ``hosts`` (H,), ``pending`` the address of ``room`` arrivals, PENDING for each host, ``hands`` (F,), ``ways`` (2 F,).
    ``burst_ns`` is how much sooner than its rate allows a link that was idle may hand packets over.
    """
    for i in range(len(kind)):
        now, s, d, f = time_ns[i], signed(src[i]), signed(dst[i]), signed(flow[i])
        if not kind[i] & TCP or kind[i] & FRAGMENT or (len(skip) and skip[i]) or now == NO_TIME:
            continue
        if flow[i] == NO_FLOW or f >= len(hands) or max(s, d) >= len(hosts):
            continue
        direction = 1 if kind[i] & REVERSE else 0
        flags, length = signed(tcp_flags[i]), signed(payload[i])
        if flags & RST:
            continue
        w = 2 * f + direction
        host, way = hosts[s], ways[w]
        _shake_hands(hands[f], host, direction, flags, now)
        if flags & SYN:
            way.highest = UNKNOWN
            continue
        _hear(host, pending, room, s, now)
        if length > 0:
            needs_ns, end = signed(orig_len[i] * ns_per_byte), (signed(seq[i]) + length) & _MASK
            round_trip_ns = _NEARLY * (max(host.turn_ns, 0) + max(hosts[d].turn_ns, 0))
            again = _is_sent_again(way, end, length, now, round_trip_ns)
            _send(host, way, ways[max(host.sent_way, 0)], w, needs_ns, burst_ns, again, now)
            if way.highest == UNKNOWN or ((end - way.highest) & _MASK) < _HALF:
                way.highest = end
            _arrive(hosts[d], pending, room, d, host.sent, needs_ns, now)
        elif not flags & FIN:
            _acknowledge(host, ways[w ^ 1], now)
