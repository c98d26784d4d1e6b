"""Traffic of every ordered pair of hosts, in one pass."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from analysis.kernels import jit
from analysis.packets import IPV4, IPV6

EMPTY: Final = np.uint32(0xFFFFFFFF)
"""A free slot: the pair (NO_HOST, NO_HOST) never sends."""

_IP = IPV4 | IPV6
_SPREAD = np.uint32(2654435769)  # 2**32 / golden ratio


@jit
def count_pairs(
    first: int, kind: Any, src: Any, dst: Any, orig_len: Any, payload: Any, skip: Any, keys: Any, totals: Any
) -> int:
    """Add packets, wire bytes and payload bytes to ``totals`` (slots, 3); ``keys`` (slots,) = source << 16 | destination.

    Slots are a power of two. Returns N, or the row before which the caller must enlarge the table (half full).
    """
    mask = np.uint32(len(keys) - 1)
    used = 0
    for i in range(len(keys)):
        used += keys[i] != EMPTY
    for i in range(first, len(kind)):
        if not kind[i] & _IP or (len(skip) and skip[i]):
            continue
        key = np.uint32((np.uint32(src[i]) << np.uint32(16)) | np.uint32(dst[i]))
        if key == EMPTY:
            continue
        slot = np.uint32(key * _SPREAD) & mask
        while keys[slot] != key and keys[slot] != EMPTY:
            slot = np.uint32(slot + np.uint32(1)) & mask
        if keys[slot] == EMPTY:
            if 2 * used >= len(keys):
                return i
            keys[slot] = key
            used += 1
        totals[slot, 0] += 1
        totals[slot, 1] += orig_len[i]
        totals[slot, 2] += payload[i]
    return len(kind)
