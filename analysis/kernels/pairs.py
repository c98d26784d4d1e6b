"""Traffic of every ordered pair of hosts, in one pass."""

from __future__ import annotations

from typing import Any

import numpy as np

from analysis.kernels import inlined, jit
from analysis.kernels.endpoints import MOST_PROBES
from analysis.kernels.raw import signed
from analysis.packets import IPV4, IPV6

_IP = IPV4 | IPV6
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio
_32 = np.uint64(32)
UNKNOWN = -1
_NO_PAIR = -2
"""Not a key: its destination would be host 2^32 - 2 (-1 is the key of NO_HOST and NO_HOST)."""
TAKEN, MISSED = range(2)
"""Entries of ``used``: number of pairs, wire bytes of packets whose pair has no slot."""


@inlined
def _spread(key: int) -> np.uint64:
    """Mix the upper bits of the key in: many hosts send to one, and one to many."""
    return np.uint64(key) * _SPREAD


@jit
def _place_of(key: int, slots: Any, keys: Any) -> int:
    """Return the slot of ``key`` or a free one; UNKNOWN within endpoints.MOST_PROBES."""
    mask = len(slots) - 1
    slot = signed(_spread(key) >> _32) & mask
    for _ in range(MOST_PROBES):
        entry = signed(slots[slot])
        if entry == 0 or keys[entry - 1] == key:
            return slot
        slot = (slot + 1) & mask
    return UNKNOWN


@inlined
def _add(totals: Any, pair: int, packets: int, wire: int, content: int) -> None:
    totals[pair, 0] += packets
    totals[pair, 1] += wire
    totals[pair, 2] += content


@jit
def count_pairs(
    kind: Any, src: Any, dst: Any, orig_len: Any, payload: Any, skip: Any,
    slots: Any, keys: Any, totals: Any, used: Any,
) -> None:  # fmt: skip
    """Add packets, wire bytes and payload bytes to ``totals`` (pairs, 3).

    ``keys`` (pairs,) = source << 32 | destination. ``totals`` is 0 for free pairs. ``slots``, a power of two and more than the pairs,
    belong to the kernel, 0 if free; ``used`` (2,) see TAKEN.
    """
    last, pair = _NO_PAIR, signed(0)
    packets = wire = content = 0  # of the current pair: successive packets mostly have the same one
    for i in range(len(kind)):
        if not kind[i] & _IP or (len(skip) and skip[i]):
            continue
        key = (signed(src[i]) << 32) | signed(dst[i])
        if key != last:
            _add(totals, pair, packets, wire, content)
            packets = wire = content = 0
            slot = _place_of(key, slots, keys)
            if slot == UNKNOWN or (slots[slot] == 0 and used[TAKEN] == len(keys)):
                used[MISSED] += signed(orig_len[i])
                last, pair = _NO_PAIR, signed(0)
                continue
            if slots[slot] == 0:
                keys[used[TAKEN]] = key
                used[TAKEN] += 1
                slots[slot] = used[TAKEN]
            last, pair = key, signed(slots[slot]) - 1
        packets += 1
        wire += signed(orig_len[i])
        content += signed(payload[i])
    _add(totals, pair, packets, wire, content)
