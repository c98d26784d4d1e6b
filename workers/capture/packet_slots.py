"""Conversion of ring slots (workers.testbed.recorder) to pcapng. Pure."""

from __future__ import annotations

import struct
from typing import Final

import numpy as np
import numpy.typing as npt

from workers.testbed.recorder import DATA_OFFSET

_FRAME_BYTES: Final = 1  # word of struct tpacket2_hdr, linux/if_packet.h
_DATA: Final = DATA_OFFSET // 4
_SECTION_HEADER, _INTERFACE = 0x0A0D0D0A, 1  # pcapng, section 11.1
_BYTE_ORDER_MAGIC: Final = 0x1A2B3C4D
_ETHERNET: Final = 1
_OPTION_NAME, _OPTION_RESOLUTION, _TENTHS = 2, 9, 9  # stamps in units of 10^-9 s


def file_header(interface: str, snap_length: int) -> bytes:
    """Return a section header and the description of one interface, stamps in ns."""
    section = struct.pack("=IHHq", _BYTE_ORDER_MAGIC, 1, 0, -1)
    options = _option(_OPTION_NAME, interface.encode()) + _option(_OPTION_RESOLUTION, bytes([_TENTHS]))
    description = struct.pack("=HHI", _ETHERNET, 0, snap_length) + options + _option(0, b"")
    return _block(_SECTION_HEADER, section) + _block(_INTERFACE, description)


def packet_blocks(slots: bytes, slot_bytes: int) -> npt.NDArray[np.uint8]:
    """Return enhanced packet blocks for whole slots, in their order."""
    from analysis.kernels.joining import slots_to_blocks  # loads numba, for which the first trial would wait

    table = np.frombuffer(slots, np.uint32).reshape(-1, slot_bytes // 4)
    blocks = np.empty(table.size, np.uint32)  # a block has fewer words before and behind its frame than a slot
    return blocks[: slots_to_blocks(table, _DATA, blocks)].view(np.uint8)


def wire_bytes(slots: bytes | memoryview[int], slot_bytes: int) -> int:
    """Return the sum of the frames' lengths on the wire; reads one word of each slot."""
    table = np.frombuffer(slots, np.uint32).reshape(-1, slot_bytes // 4)
    return int(table[:, _FRAME_BYTES].sum(dtype=np.int64))


def _block(kind: int, body: bytes) -> bytes:
    body += b"\0" * (-len(body) % 4)
    length = len(body) + 12
    return struct.pack("=II", kind, length) + body + struct.pack("=I", length)


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("=HH", code, len(value)) + value + b"\0" * (-len(value) % 4)
