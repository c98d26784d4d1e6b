"""Connections that made room for others: what is kept of each to go on where it was left, in 24 bytes."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from analysis.kernels import jit
from analysis.kernels.opening import open_connection, scaled_window
from analysis.kernels.pointers import record_at
from analysis.kernels.raw import signed
from analysis.kernels.segments import release
from analysis.kernels.tcp_state import HANDSHAKE_SYN, NO_NODE, NO_SYN, SEQUENCE_SPACE, UNKNOWN
from analysis.packets import ACK, RST, SYN

NOTHING_KEPT: Final = -2
"""In ``current``: the flow's connection was set aside and nothing of it is kept; below it, -3 - the number of its rest."""
_FIRST_KEPT: Final = -3
_OPENED: Final = -(1 << 30)
"""In ``current``, from here downwards: nothing but a SYN was seen, whose number (its lower 29 bits) and direction are in the entry."""
_SHORT: Final = (1 << 29) - 1

REST: Final = np.dtype(
    [("highest", np.uint32), ("base", np.uint32), ("last_window", np.uint16), ("said", np.uint16)], align=True
)
"""One direction; two rows per connection. ``base`` is the ISN where that is known; ``said``: bits below."""
ISN: Final = 1
BASE: Final = 2
ACKED: Final = 4
WAITING: Final = 8
"""Bytes were on their way or missing, which is forgotten."""
WINDOW: Final = 16
_HANDSHAKE: Final = 5
_INITIATOR: Final = 8
_SCALE: Final = 10
"""Lowest bits of three numbers: handshake (0 to 4), and from their least value on the initiator (-1 to 1) and the scale (-2 to 14)."""
_FARTHEST: Final = SEQUENCE_SPACE - 1

rest_at = record_at(REST)


@jit
def lists_given_back(leaving: Any, sides: Any, stores: Any) -> None:
    """Free the list nodes of the connections ``leaving`` (n,)."""
    store = stores[0]
    for index in leaving:
        release(sides[2 * index], store)
        release(sides[2 * index + 1], store)


@jit
def move_together(staying: Any, connections: Any, sides: Any) -> None:
    """Move the connections ``staying`` (n,), ascending, to the front."""
    for i in range(len(staying)):
        connections[i] = connections[staying[i]]
        sides[2 * i] = sides[2 * staying[i]]
        sides[2 * i + 1] = sides[2 * staying[i] + 1]


@jit
def _keep_side(rest: Any, connection: Any, side: Any) -> None:
    said = 0
    if side.base != UNKNOWN:
        said |= BASE | (ISN if side.isn != UNKNOWN else 0)
        rest.base = side.base & _FARTHEST
        rest.highest = min(side.highest, _FARTHEST)
        if side.highest > _FARTHEST:  # too far from its beginning for 32 bits: numbers are told from a later byte on
            rest.base = (side.base + side.highest - _FARTHEST) & _FARTHEST
            said &= ~ISN
    if side.last_window != UNKNOWN:
        said |= WINDOW
        rest.last_window = side.last_window
    said |= ACKED if side.acked_known else 0
    said |= WAITING if side.oldest != NO_NODE or side.runs_below != NO_NODE else 0
    said |= connection.handshake << _HANDSHAKE
    said |= (connection.initiator - UNKNOWN) << _INITIATOR
    rest.said = said | (side.wscale - NO_SYN) << _SCALE


@jit
def keep_rests(kept: Any, places: Any, connections: Any, sides: Any, rests: Any) -> None:
    """Write the rests of the connections ``kept`` (n,) to ``rests``: number ``places`` (n,) of each, two rows."""
    for i in range(len(kept)):
        for direction in range(2):
            _keep_side(rests[2 * places[i] + direction], connections[kept[i]], sides[2 * kept[i] + direction])


def opened_entries(isn: Any, direction: Any) -> Any:
    """Shape (n,) for ``current``: of these connections a SYN with the number ``isn`` (n,) in ``direction`` (n,) is all that was seen."""
    return _OPENED - ((isn & _SHORT) << 1 | direction)


@jit
def goes_on(store: Any, entry: int, direction: int, flags: int, seq: int) -> bool:
    """Whether a packet belongs to the connection that was set aside as ``entry`` of its flow, and opens no other."""
    if flags & (SYN | RST) != SYN or flags & ACK:
        return True
    if entry == NOTHING_KEPT:
        return False
    if entry <= _OPENED:
        return _OPENED - entry == (seq & _SHORT) << 1 | direction
    rest = rest_at(store.rests, store.rest_room, 2 * (_FIRST_KEPT - entry) + direction)
    return bool(rest.said & ISN and rest.base == seq)


@jit
def take_up(connections: Any, sides: Any, store: Any, flow: int, entry: int) -> int:
    """A connection that goes on: its numbers and windows are those of before, its counters begin at 0."""
    index = open_connection(connections, sides, store, flow)
    connection = connections[index]
    connection.resumed = 1
    store.resumed += 1
    if entry == NOTHING_KEPT:
        store.interrupted += 1
        return signed(index)
    if entry <= _OPENED:  # no byte was on its way
        connection.initiator = (_OPENED - entry) & 1
        connection.handshake = HANDSHAKE_SYN
        return signed(index)
    connection.rest = _FIRST_KEPT - entry
    waiting = False
    for direction in range(2):
        rest = rest_at(store.rests, store.rest_room, 2 * (_FIRST_KEPT - entry) + direction)
        side, said = sides[2 * index + direction], signed(rest.said)
        connection.initiator = (said >> _INITIATOR & 3) + UNKNOWN
        connection.handshake = said >> _HANDSHAKE & 7
        waiting |= said & WAITING != 0
        if said & ISN:
            side.isn = rest.base
        if said & BASE:
            side.base = rest.base
            side.highest = rest.highest
            if rest.highest > 0:
                side.runs = 1
                side.run_end = rest.highest
        if said & ACKED:
            side.acked_known = 1
            side.acked = side.highest
        side.wscale = (said >> _SCALE) + NO_SYN
        if said & WINDOW:
            side.last_window = rest.last_window
    for direction in range(2):
        side, peer = sides[2 * index + direction], sides[2 * index + 1 - direction]
        side.last_window_bytes = scaled_window(side, peer, side.last_window)
    store.interrupted += waiting
    return signed(index)
