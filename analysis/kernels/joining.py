"""Packet blocks of pcapng files of this machine's byte order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from analysis.kernels import jit
from analysis.kernels.raw import signed

Bytes = npt.NDArray[np.uint8]
Int64 = npt.NDArray[np.int64]
UInt32 = npt.NDArray[np.uint32]

ENHANCED_PACKET = 6
FIXED = 28
"""Bytes of an enhanced packet block before its packet: type, length, interface, time (8), captured, original."""
CAPTURED = 20
"""Offset of its captured length."""
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

    The number may exceed the room of ``offset``. Hosts write the blocks: one that claims more bytes than it has is the end.
    """
    at = 0
    count = 0
    while at + SHORTEST <= len(data):
        length = _u32(data, at + 4)
        if length < SHORTEST or length % 4 or at + length > len(data):
            break
        if _u32(data, at) == ENHANCED_PACKET and length >= FIXED + 4:
            if _u32(data, at + CAPTURED) > length - FIXED - 4:
                break
            if count < len(offset):
                offset[count] = at
            count += 1
        at += length
    end[0] = at
    return count


@jit
def slots_to_blocks(slots: UInt32, first_data: int, blocks: UInt32) -> int:
    """Fill ``blocks`` with a packet block per row of ``slots``; return the words used.

    A row is a slot of the kernel's ring: struct tpacket2_hdr (linux/if_packet.h), then at the word ``first_data`` the frame.
    ``blocks`` needs 8 words a row beside those of the frames; a frame that claims more words than its slot has is cut.
    """
    at = 0
    for slot in slots:
        captured = min(signed(slot[2]), 4 * (len(slot) - first_data))
        words = (captured + 3) // 4
        size = np.uint32(FIXED + 4 + 4 * words)
        stamp_ns = signed(slot[4]) * 1_000_000_000 + signed(slot[5])
        blocks[at] = ENHANCED_PACKET
        blocks[at + 1] = size
        blocks[at + 2] = 0
        blocks[at + 3] = stamp_ns >> 32
        blocks[at + 4] = stamp_ns & 0xFFFFFFFF
        blocks[at + 5] = captured
        blocks[at + 6] = slot[1]
        at += 7
        for word in range(words):
            blocks[at + word] = slot[first_data + word]
        at += words
        if captured % 4:  # the slot may hold what an earlier, longer frame left
            blocks[at - 1] &= np.uint32((1 << 8 * (captured % 4)) - 1)
        blocks[at] = size
        at += 1
    return at
