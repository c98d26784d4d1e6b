"""Traffic of every ordered pair of hosts, in one pass."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from analysis.kernels import jit
from analysis.kernels.raw import signed
from analysis.packets import IPV4, IPV6

EMPTY: Final = np.uint32(0xFFFFFFFF)
"""A free slot: the pair (NO_HOST, NO_HOST) never sends."""

_IP = IPV4 | IPV6
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio
_32 = np.uint64(32)


@jit
def slot_of(key: int, keys: Any) -> int:
    """Where ``key`` is, or is to be entered. Its upper bits decide as well: many hosts send to one, and one to many."""
    mask = len(keys) - 1
    slot = signed((np.uint64(key) * _SPREAD) >> _32) & mask
    while keys[slot] != key and keys[slot] != EMPTY:
        slot = (slot + 1) & mask
    return slot


@jit
def count_pairs(
    first: int, kind: Any, src: Any, dst: Any, orig_len: Any, payload: Any, skip: Any, keys: Any, totals: Any, used: Any
) -> int:
    """Add packets, wire bytes and payload bytes to ``totals`` (slots, 3); ``keys`` (slots,) = source << 16 | destination.

    Slots are a power of two, ``used`` (1,) of them taken. Returns N, or the row before which the caller must make room (half full).
    """
    for i in range(first, len(kind)):
        if not kind[i] & _IP or (len(skip) and skip[i]):
            continue
        key = (signed(src[i]) << 16) | signed(dst[i])
        if key == EMPTY:
            continue
        slot = slot_of(key, keys)
        if keys[slot] == EMPTY:
            if 2 * used[0] >= len(keys):
                return i
            keys[slot] = key
            used[0] += 1
        totals[slot, 0] += 1
        totals[slot, 1] += orig_len[i]
        totals[slot, 2] += payload[i]
    return len(kind)


@jit
def reenter_pairs(old_keys: Any, old_totals: Any, keys: Any, totals: Any) -> None:
    """Enter pairs into an empty table with room for them."""
    for i in range(len(old_keys)):
        slot = slot_of(signed(old_keys[i]), keys)
        keys[slot] = old_keys[i]
        for column in range(old_totals.shape[1]):
            totals[slot, column] = old_totals[i, column]
