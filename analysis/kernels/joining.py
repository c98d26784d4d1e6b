"""Packet blocks of pcapng files of this machine's byte order: found, and copied in another order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from analysis.kernels import jit
from analysis.kernels.raw import signed

Bytes = npt.NDArray[np.uint8]
Int64 = npt.NDArray[np.int64]

ENHANCED_PACKET = 6
FIXED = 28
"""Bytes of an enhanced packet block in front of its packet: type, length, interface, time (8), captured, original."""
SHORTEST = 12


@jit
def _u32(data: Bytes, at: int) -> int:
    value = 0
    for byte in range(4):
        value |= signed(data[at + byte]) << (8 * byte)
    return value


@jit
def _put_u32(data: Bytes, at: int, value: int) -> None:
    for byte in range(4):
        data[at + byte] = (value >> (8 * byte)) & 0xFF


@jit
def packet_blocks(data: Bytes, offset: Int64, end: Int64) -> int:
    """Write where complete enhanced packet blocks begin, and to ``end`` where the last complete block ends; returns how many packets
    there are, also beyond the room of ``offset``."""
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


@jit
def copy_blocks(data: Bytes, offset: Int64, time_ns: Int64, interface: int, place: Int64, out: Bytes) -> None:
    """Copy blocks to ``place`` of ``out`` with another interface and time in ns; their options are left out."""
    for i in range(len(offset)):
        start = offset[i]
        captured = _u32(data, start + 20)
        padded = (captured + 3) // 4 * 4
        length = FIXED + padded + 4
        to = place[i]
        _put_u32(out, to, ENHANCED_PACKET)
        _put_u32(out, to + 4, length)
        _put_u32(out, to + 8, interface)
        _put_u32(out, to + 12, time_ns[i] >> 32)
        _put_u32(out, to + 16, time_ns[i] & 0xFFFFFFFF)
        _put_u32(out, to + 20, captured)
        _put_u32(out, to + 24, _u32(data, start + 24))
        for byte in range(captured):
            out[to + FIXED + byte] = data[start + FIXED + byte]
        for byte in range(captured, padded):
            out[to + FIXED + byte] = 0
        _put_u32(out, to + length - 4, length)


@jit
def copied_lengths(data: Bytes, offset: Int64, length: Int64) -> None:
    """How long each block will be as ``copy_blocks`` writes it."""
    for i in range(len(offset)):
        length[i] = FIXED + (_u32(data, offset[i] + 20) + 3) // 4 * 4 + 4
