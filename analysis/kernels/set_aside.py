"""Connections that made room for others: what is kept of each to go on where it was left, in 48 bytes."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from analysis.kernels import jit
from analysis.kernels.opening import open_connection, scaled_window
from analysis.kernels.pointers import record_at
from analysis.kernels.raw import signed
from analysis.kernels.segments import release
from analysis.kernels.tcp_state import NO_NODE, SEQUENCE_SPACE, UNKNOWN
from analysis.packets import ACK, RST, SYN

NOTHING_KEPT: Final = -2
"""In ``current``: the flow's connection was set aside and nothing of it is kept; below it, -3 - the number of its rest."""
_FIRST_KEPT: Final = -3

REST: Final = np.dtype(
    [
        ("highest", np.int64), ("isn", np.uint32), ("base", np.uint32), ("last_window", np.int32), ("wscale", np.int8),
        ("initiator", np.int8), ("handshake", np.int8), ("known", np.uint8),
    ],
    align=True,
)  # fmt: skip
"""One direction; two rows per connection. ``known``: bits below."""
ISN: Final = 1
BASE: Final = 2
ACKED: Final = 4
WAITING: Final = 8
"""Bytes were on their way or missing, which is forgotten."""

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
def keep_rests(kept: Any, places: Any, connections: Any, sides: Any, rests: Any) -> None:
    """Write the rests of the connections ``kept`` (n,) to ``rests``: number ``places`` (n,) of each, two rows."""
    for i in range(len(kept)):
        connection = connections[kept[i]]
        for direction in range(2):
            side = sides[2 * kept[i] + direction]
            rest = rests[2 * places[i] + direction]
            rest.highest = side.highest
            rest.isn = side.isn & (SEQUENCE_SPACE - 1)
            rest.base = side.base & (SEQUENCE_SPACE - 1)
            rest.last_window = side.last_window
            rest.wscale = side.wscale
            rest.initiator = connection.initiator
            rest.handshake = connection.handshake
            known = ISN if side.isn != UNKNOWN else 0
            known |= BASE if side.base != UNKNOWN else 0
            known |= ACKED if side.acked_known else 0
            known |= WAITING if side.oldest != NO_NODE or side.runs_below != NO_NODE else 0
            rest.known = known


@jit
def goes_on(store: Any, entry: int, direction: int, flags: int, seq: int) -> bool:
    """Whether a packet belongs to the connection that was set aside as ``entry`` of its flow, and opens no other."""
    if flags & (SYN | RST) != SYN or flags & ACK:
        return True
    if entry == NOTHING_KEPT:
        return False
    rest = rest_at(store.rests, store.rest_room, 2 * (_FIRST_KEPT - entry) + direction)
    return bool(rest.known & ISN and rest.isn == seq)


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
    connection.rest = _FIRST_KEPT - entry
    waiting = False
    for direction in range(2):
        rest = rest_at(store.rests, store.rest_room, 2 * (_FIRST_KEPT - entry) + direction)
        side = sides[2 * index + direction]
        connection.initiator = rest.initiator
        connection.handshake = rest.handshake
        waiting |= rest.known & WAITING != 0
        if rest.known & ISN:
            side.isn = rest.isn
        if rest.known & BASE:
            side.base = rest.base
            side.highest = rest.highest
            if rest.highest > 0:
                side.runs = 1
                side.run_end = rest.highest
        if rest.known & ACKED:
            side.acked_known = 1
            side.acked = rest.highest
        side.wscale = rest.wscale
        side.last_window = rest.last_window
    for direction in range(2):
        side, peer = sides[2 * index + direction], sides[2 * index + 1 - direction]
        side.last_window_bytes = scaled_window(side, peer, side.last_window)
    store.interrupted += waiting
    return signed(index)
