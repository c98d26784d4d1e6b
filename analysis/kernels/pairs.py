"""Traffic of every ordered pair of hosts, in one pass."""

from __future__ import annotations

from typing import Any

import numpy as np

from analysis.kernels import inlined, jit
from analysis.kernels.raw import signed
from analysis.packets import IPV4, IPV6

_IP = IPV4 | IPV6
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio
_32 = np.uint64(32)


@jit
def _place_of(key: int, slots: Any, keys: Any) -> int:
    """The slot that names ``key``, or a free one. Its upper bits decide as well: many hosts send to one, and one to many."""
    mask = len(slots) - 1
    place = signed((np.uint64(key) * _SPREAD) >> _32) & mask
    while slots[place] != 0 and keys[slots[place] - 1] != key:
        place = (place + 1) & mask
    return place


@inlined
def _add(totals: Any, pair: int, packets: int, wire: int, content: int) -> None:
    totals[pair, 0] += packets
    totals[pair, 1] += wire
    totals[pair, 2] += content


@jit
def count_pairs(
    first: int, kind: Any, src: Any, dst: Any, orig_len: Any, payload: Any, skip: Any,
    slots: Any, keys: Any, totals: Any, used: Any,
) -> int:  # fmt: skip
    """Add packets, wire bytes and payload bytes to ``totals`` (pairs, 3); ``keys`` (pairs,) = source << 16 | destination.

    ``slots``, a power of two and more than the pairs, hold numbers of pairs + 1, 0 where free; ``used`` (1,) pairs are taken.
    Returns N, or the row before which the caller must make room.
    """
    last, pair = -1, signed(0)
    packets = wire = content = 0  # of that pair since it came last: neighbours mostly go the same way
    for i in range(first, len(kind)):
        if not kind[i] & _IP or (len(skip) and skip[i]):
            continue
        key = (signed(src[i]) << 16) | signed(dst[i])
        if key != last:
            _add(totals, pair, packets, wire, content)
            packets = wire = content = 0
            place = _place_of(key, slots, keys)
            if slots[place] == 0:
                if used[0] == len(keys):
                    return i
                keys[used[0]] = key
                used[0] += 1
                slots[place] = used[0]
            last, pair = key, signed(slots[place]) - 1
        packets += 1
        wire += signed(orig_len[i])
        content += signed(payload[i])
    _add(totals, pair, packets, wire, content)
    return len(kind)


@jit
def enter_pairs(keys: Any, slots: Any) -> None:
    """Enter the pairs ``keys`` (n,) into free slots."""
    for pair in range(len(keys)):
        slots[_place_of(signed(keys[pair]), slots, keys)] = pair + 1
