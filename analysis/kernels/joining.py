"""Packet blocks of pcapng files of this machine's byte order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from analysis.kernels import jit
from analysis.kernels.raw import signed

Bytes = npt.NDArray[np.uint8]
Int64 = npt.NDArray[np.int64]

ENHANCED_PACKET = 6
FIXED = 28
"""Bytes of an enhanced packet block before its packet: type, length, interface, time (8), captured, original."""
SHORTEST = 12


@jit
def _u32(data: Bytes, at: int) -> int:
    value = 0
    for byte in range(4):
        value |= signed(data[at + byte]) << (8 * byte)
    return value


@jit
def packet_blocks(data: Bytes, offset: Int64, end: Int64) -> int:
    """Fill ``offset`` with complete packet blocks, and ``end``; return their number.

    The number may exceed the room of ``offset``.
    """
    at = 0
    count = 0
    while at + SHORTEST <= len(data):
        length = _u32(data, at + 4)
        if length < SHORTEST or length % 4 or at + length > len(data):
            break
        if _u32(data, at) == ENHANCED_PACKET and length >= FIXED + 4:
            if count < len(offset):
                offset[count] = at
            count += 1
        at += length
    end[0] = at
    return count
