"""One pass over the packets: the chain of messages that wait for each other. Definitions: docstring of analysis.traffic.chains."""

from __future__ import annotations

from typing import Any, Final

from analysis.kernels import jit
from analysis.kernels.raw import signed
from analysis.packets import ACK, CUT, FIN, FRAGMENT, NO_FLOW, NO_TIME, REVERSE, RST, SYN, TCP

# Columns of a chain
LATENCY_NS: Final = 0
VOLUME_NS: Final = 1
RETRANSMISSION_NS: Final = 2
MESSAGES: Final = 3
END_NS: Final = 4
"""When all that the chain explains is over: a part that would end behind the packet that it explains is cut there."""
OWED_NS: Final = 5
"""Volume that came sooner than the rate of the link allows: a link that was idle hands a burst over, and rests afterwards."""
PARTS: Final = 6

# Chains of a host: behind what it sent last, behind what it has heard, behind what its port received
SENT: Final = 0
HEARD: Final = 1
INTO: Final = 2

# Columns of a host's times
TURN_NS: Final = 0
"""From the capture point to the host and back, smallest of its handshakes; UNKNOWN before the first."""
SENT_NS: Final = 1
HEARD_NS: Final = 2
FIRST: Final = 3
COUNT: Final = 4
BEGAN_NS: Final = 5
"""Arrivals on their way to the host: the place of the oldest in its ring, how many, when the newest of them began."""
HOST_COLUMNS: Final = 6
PENDING: Final = 32

# Columns of a direction of a flow, and its chains
LAST_NS: Final = 0
ACK_NS: Final = 1
HIGHEST: Final = 2
WAY_COLUMNS: Final = 3
DATA: Final = 0
ACKED: Final = 1

# Columns of a flow's handshake
SYN_NS: Final = 0
SYN_ACK_NS: Final = 1
INITIATOR: Final = 2

UNKNOWN: Final = -1
_NEVER = NO_TIME
_NEARLY = 0.9
"""A wait of this share of the turn counts as one: arrivals are kept by sixteenths of it, and stamps scatter."""
_KEPT_APART = 16
_PROMPTLY = 1.25
_WORTH = 0.5
"""A wait for what was heard must explain this share of a turn more than the host's own packets do."""
_BEHIND = 1.5
"""A packet no later than this many times its own length behind the one before has queued behind it."""
_HALF = 1 << 31
_MASK = (1 << 32) - 1


@jit
def explained_ns(chain: Any) -> int:
    return signed(chain[LATENCY_NS] + chain[VOLUME_NS] + chain[RETRANSMISSION_NS])


@jit
def _copy(source: Any, target: Any) -> None:
    for part in range(PARTS):
        target[part] = source[part]


@jit
def _extend(chain: Any, part: int, length_ns: int, now: int) -> None:
    """``length_ns`` more of ``part``, as far as that ends by now."""
    length_ns = max(min(length_ns, now - chain[END_NS]), 0)
    chain[part] += length_ns
    chain[END_NS] += length_ns


@jit
def _carry(chain: Any, needs_ns: int, burst_ns: int, now: int) -> None:
    """A packet more, as far as the time since the one before holds it; what it does not hold is owed, ``burst_ns`` at most."""
    due_ns = needs_ns + chain[OWED_NS]
    paid_ns = max(min(due_ns, now - chain[END_NS]), 0)
    chain[VOLUME_NS] += paid_ns
    chain[OWED_NS] = min(due_ns - paid_ns, burst_ns)
    chain[END_NS] = now


@jit
def _adopt(source: Any, target: Any, part: int, wait_ns: int, worth_ns: float, now: int) -> None:
    """``target`` becomes ``source`` and a wait more, where that explains ``worth_ns`` more.

    What a port was still to receive is taken back: the host went on without it, so it came sooner.
    """
    too_long_ns = max(source[END_NS] - now, 0)
    wait_ns = max(min(wait_ns, now - source[END_NS]), 0)
    if explained_ns(source) - too_long_ns + wait_ns <= explained_ns(target) + worth_ns:
        return
    _copy(source, target)
    target[OWED_NS] = 0
    target[VOLUME_NS] -= too_long_ns
    target[END_NS] -= too_long_ns
    _extend(target, part, wait_ns, now)
    if part == LATENCY_NS:
        target[MESSAGES] += 1


@jit
def _hear(host: Any, chains: Any, pending: Any, now: int) -> None:
    """Move what has reached the host by ``now`` from the ring to its chain HEARD."""
    wait_ns = _NEARLY * host[TURN_NS]
    while host[COUNT] > 0:
        arrival = pending[host[FIRST]]
        if host[COUNT] < PENDING and now - arrival[PARTS] < wait_ns:
            return
        if host[HEARD_NS] == _NEVER or explained_ns(arrival) >= explained_ns(chains[HEARD]):
            _copy(arrival, chains[HEARD])
            host[HEARD_NS] = arrival[PARTS]
        host[FIRST] = (host[FIRST] + 1) % PENDING
        host[COUNT] -= 1


@jit
def _arrive(host: Any, chains: Any, pending: Any, chain: Any, needs_ns: int, now: int) -> None:
    """A packet with ``chain`` goes to the host: behind what its port received before, or as it comes."""
    into = chains[INTO]
    into[END_NS] = max(into[END_NS], now - needs_ns)
    into[VOLUME_NS] += needs_ns
    into[END_NS] += needs_ns
    if explained_ns(chain) >= explained_ns(into):
        _copy(chain, into)
    if host[COUNT] == 0 or (now - host[BEGAN_NS]) * _KEPT_APART >= max(host[TURN_NS], 0):
        if host[COUNT] == PENDING:
            _hear(host, chains, pending, now)
        host[COUNT] += 1
        host[BEGAN_NS] = now
    newest = pending[(host[FIRST] + host[COUNT] - 1) % PENDING]
    _copy(into, newest)
    newest[PARTS] = now


@jit
def _is_sent_again(way: Any, end: int, payload: int, now: int, round_trip_ns: float) -> bool:
    """Below the highest byte and no sooner than the sender can have learnt of a loss: sooner is reordering.

    One byte just below the highest is a keep-alive, or a probe of a closed window.
    """
    if way[HIGHEST] == UNKNOWN or way[LAST_NS] == _NEVER or now - way[LAST_NS] < round_trip_ns:
        return False
    beyond = ((end - way[HIGHEST] + _HALF) & _MASK) - _HALF
    return bool(beyond <= 0 and not (payload <= 1 and beyond == 0))


@jit
def _send(
    host: Any, chains: Any, way: Any, way_chains: Any, chain: Any, needs_ns: int, burst_ns: int, again: bool, now: int
) -> None:
    """The chain of a data packet: the longest of those that it can have waited for, and its own bytes."""
    _copy(chains[SENT], chain)
    turn_ns, worth_ns = host[TURN_NS], _WORTH * host[TURN_NS]
    waited = turn_ns != UNKNOWN and (way[LAST_NS] == _NEVER or now - way[LAST_NS] >= _NEARLY * turn_ns)
    if waited and (host[SENT_NS] == _NEVER or now - host[SENT_NS] > _BEHIND * needs_ns):
        if host[HEARD_NS] != _NEVER:
            _adopt(chains[HEARD], chain, LATENCY_NS, min(turn_ns, now - host[HEARD_NS]), worth_ns, now)
        since = now - way[ACK_NS] if way[ACK_NS] != _NEVER else 0
        if since > 0 and _NEARLY * turn_ns <= since <= _PROMPTLY * turn_ns + needs_ns:
            _adopt(way_chains[ACKED], chain, LATENCY_NS, min(turn_ns, since), worth_ns, now)
    if again:
        _adopt(way_chains[DATA], chain, RETRANSMISSION_NS, now - way[LAST_NS], 0, now)
    _carry(chain, needs_ns, burst_ns, now)
    _copy(chain, chains[SENT])
    _copy(chain, way_chains[DATA])
    host[SENT_NS] = now
    way[LAST_NS] = now


@jit
def _acknowledge(host: Any, chains: Any, peer: Any, peer_chains: Any, now: int) -> None:
    """Keep the first pure ACK behind the peer's last data: it may be what the peer waits for."""
    waits = peer[LAST_NS] != _NEVER and (peer[ACK_NS] == _NEVER or peer[ACK_NS] < peer[LAST_NS])
    if waits and host[HEARD_NS] != _NEVER and host[TURN_NS] != UNKNOWN:
        peer[ACK_NS] = now
        _copy(chains[HEARD], peer_chains[ACKED])
        _extend(peer_chains[ACKED], LATENCY_NS, min(host[TURN_NS], now - host[HEARD_NS]), now)
        peer_chains[ACKED][MESSAGES] += 1


@jit
def _measure_turn(host: Any, since_ns: int, now: int) -> None:
    turn_ns = max(now - since_ns, 0)
    if host[TURN_NS] == UNKNOWN or turn_ns < host[TURN_NS]:
        host[TURN_NS] = turn_ns


@jit
def _shake_hands(hand: Any, sender: Any, direction: int, flags: int, now: int) -> None:
    """Times of the handshake, while nothing is repeated: to the accepting host and back, to the opening one and back."""
    if flags & SYN and not flags & ACK:
        first = hand[SYN_NS] == _NEVER or hand[SYN_ACK_NS] != _NEVER
        hand[SYN_NS] = now if first else _NEVER
        hand[SYN_ACK_NS] = _NEVER
        hand[INITIATOR] = direction
    elif flags & SYN:
        if hand[SYN_NS] != _NEVER and hand[INITIATOR] != direction:
            _measure_turn(sender, hand[SYN_NS], now)
            hand[SYN_ACK_NS] = now
        hand[SYN_NS] = _NEVER
    elif hand[SYN_ACK_NS] != _NEVER and hand[INITIATOR] == direction:
        _measure_turn(sender, hand[SYN_ACK_NS], now)
        hand[SYN_ACK_NS] = _NEVER


@jit
def follow_chains(
    kind: Any, time_ns: Any, src: Any, dst: Any, flow: Any, orig_len: Any, payload: Any, seq: Any, tcp_flags: Any, skip: Any,
    hosts: Any, chains: Any, pending: Any, hands: Any, ways: Any, way_chains: Any,
    ns_per_byte: float, burst_ns: int, chain: Any,
) -> None:  # fmt: skip
    """Follow packets of hosts and flows that the arrays have room for; ``chain`` (PARTS,) is room to work in.

    ``hosts`` (H, HOST_COLUMNS), ``chains`` (H, 3, PARTS), ``pending`` (H, PENDING, PARTS + 1), ``hands`` (F, 3),
    ``ways`` (2 F, WAY_COLUMNS), ``way_chains`` (2 F, 2, PARTS). ``burst_ns`` is how much sooner than its rate allows a link
    that was idle may hand packets over.
    """
    for i in range(len(kind)):
        now, s, d, f = time_ns[i], signed(src[i]), signed(dst[i]), signed(flow[i])
        if not kind[i] & TCP or kind[i] & (FRAGMENT | CUT) or (len(skip) and skip[i]) or now == NO_TIME:
            continue
        if flow[i] == NO_FLOW or f >= len(hands) or max(s, d) >= len(hosts):
            continue
        direction = 1 if kind[i] & REVERSE else 0
        flags, mine, peer = signed(tcp_flags[i]), 2 * f + direction, 2 * f + 1 - direction
        if flags & RST:
            continue
        _shake_hands(hands[f], hosts[s], direction, flags, now)
        if flags & SYN:
            ways[mine, HIGHEST] = UNKNOWN
            continue
        _hear(hosts[s], chains[s], pending[s], now)
        if payload[i] > 0:
            needs_ns, end = signed(orig_len[i] * ns_per_byte), (signed(seq[i]) + signed(payload[i])) & _MASK
            round_trip_ns = _NEARLY * (max(hosts[s, TURN_NS], 0) + max(hosts[d, TURN_NS], 0))
            again = _is_sent_again(ways[mine], end, signed(payload[i]), now, round_trip_ns)
            _send(hosts[s], chains[s], ways[mine], way_chains[mine], chain, needs_ns, burst_ns, again, now)
            if ways[mine, HIGHEST] == UNKNOWN or ((end - ways[mine, HIGHEST]) & _MASK) < _HALF:
                ways[mine, HIGHEST] = end
            _arrive(hosts[d], chains[d], pending[d], chain, needs_ns, now)
        elif not flags & FIN:
            _acknowledge(hosts[s], chains[s], ways[peer], way_chains[peer], now)
