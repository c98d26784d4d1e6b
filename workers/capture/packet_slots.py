"""Conversion of ring slots (workers.testbed.recorder) to pcapng. Pure."""

from __future__ import annotations

import struct
from typing import Final

import numpy as np
import numpy.typing as npt

from workers.testbed.recorder import DATA_OFFSET

UInt32 = npt.NDArray[np.uint32]

_FRAME_BYTES, _KEPT_BYTES, _SECONDS, _NANOSECONDS = 1, 2, 4, 5  # words of struct tpacket2_hdr, linux/if_packet.h
_DATA: Final = DATA_OFFSET // 4
_SECTION_HEADER, _INTERFACE, _ENHANCED_PACKET = 0x0A0D0D0A, 1, 6  # pcapng, section 11.1
_BYTE_ORDER_MAGIC: Final = 0x1A2B3C4D
_ETHERNET: Final = 1
_OPTION_NAME, _OPTION_RESOLUTION, _TENTHS = 2, 9, 9  # stamps in units of 10^-9 s
_BEFORE_DATA: Final = 7  # words: type, length, interface, two halves of the stamp, both lengths of the frame
_REST_OF_WORD: Final = np.frombuffer(
    bytes.fromhex("ffffffff ff000000 ffff0000 ffffff00"), np.uint32
)  # the bytes of a last word that belong to the frame, by their number (0: all four)
_ROWS_AT_ONCE: Final = 8192  # 1.3 MB at the default snap length: stays in the processor's cache


def file_header(interface: str, snap_length: int) -> bytes:
    """Return a section header and the description of one interface, stamps in ns."""
    section = struct.pack("=IHHq", _BYTE_ORDER_MAGIC, 1, 0, -1)
    options = _option(_OPTION_NAME, interface.encode()) + _option(_OPTION_RESOLUTION, bytes([_TENTHS]))
    description = struct.pack("=HHI", _ETHERNET, 0, snap_length) + options + _option(0, b"")
    return _block(_SECTION_HEADER, section) + _block(_INTERFACE, description)


def packet_blocks(slots: bytes, slot_bytes: int) -> bytes:
    """Return enhanced packet blocks for whole slots, in their order."""
    table = np.frombuffer(slots, np.uint32).reshape(-1, slot_bytes // 4)
    return b"".join(
        _blocks(table[start : start + _ROWS_AT_ONCE]).tobytes() for start in range(0, len(table), _ROWS_AT_ONCE)
    )


def wire_bytes(slots: bytes | memoryview[int], slot_bytes: int) -> int:
    """Return the sum of the frames' lengths on the wire; reads one word of each slot."""
    table = np.frombuffer(slots, np.uint32).reshape(-1, slot_bytes // 4)
    return int(table[:, _FRAME_BYTES].sum(dtype=np.int64))


def _blocks(table: UInt32) -> UInt32:
    """Return the blocks of some slots, built at the greatest length and then cut."""
    captured_bytes = table[:, _KEPT_BYTES]
    words = (captured_bytes + 3) // 4
    length = words + _BEFORE_DATA + 1
    stamp = table[:, _SECONDS].astype(np.uint64) * np.uint64(10**9) + table[:, _NANOSECONDS]
    most = int(words.max())
    blocks = np.empty((len(table), _BEFORE_DATA + most + 1), np.uint32)
    blocks[:, 0] = _ENHANCED_PACKET
    blocks[:, 1] = 4 * length
    blocks[:, 2] = 0
    blocks[:, 3] = stamp >> np.uint64(32)
    blocks[:, 4] = stamp & np.uint64(0xFFFFFFFF)
    blocks[:, 5] = captured_bytes
    blocks[:, 6] = table[:, _FRAME_BYTES]
    blocks[:, _BEFORE_DATA : _BEFORE_DATA + most] = table[:, _DATA : _DATA + most]
    row = np.arange(len(table))
    blocks[row, length - 2] &= _REST_OF_WORD[captured_bytes % 4]  # the slot may hold what an earlier, longer frame left
    blocks[row, length - 1] = 4 * length
    return blocks[np.arange(blocks.shape[1], dtype=np.uint32) < length[:, None]]


def _block(kind: int, body: bytes) -> bytes:
    body += b"\0" * (-len(body) % 4)
    length = len(body) + 12
    return struct.pack("=II", kind, length) + body + struct.pack("=I", length)


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("=HH", code, len(value)) + value + b"\0" * (-len(value) % 4)
