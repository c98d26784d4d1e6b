"""The same packets in frames of every link type but Ethernet."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final


def _type(packet: bytes) -> bytes:
    return b"\x86\xdd" if packet[0] >> 4 == 6 else b"\x08\x00"


def _family(packet: bytes) -> int:
    return 24 if packet[0] >> 4 == 6 else 2


def radiotap(packet: bytes) -> bytes:
    """Return an IEEE 802.11 frame behind a radiotap header, for tshark only."""
    frame = b"\x08\0\0\0" + bytes(20) + bytes.fromhex("aaaa03000000") + _type(packet) + packet
    return b"\0\0\x08\0\0\0\0\0" + frame


Wrap = Callable[[bytes], bytes]
LINKS: Final[dict[str, tuple[int, Wrap]]] = {
    "null": (0, lambda p: struct.pack("<I", _family(p)) + p),
    "loop": (108, lambda p: struct.pack(">I", _family(p)) + p),
    "raw": (101, lambda p: p),
    "raw-bsd": (14, lambda p: p),
    "cooked": (113, lambda p: bytes([0, 0, 0, 1, 0, 6]) + bytes(8) + _type(p) + p),
    "cooked-v2": (276, lambda p: _type(p) + bytes(18) + p),
    "ip-over-infiniband": (242, lambda p: bytes(40) + _type(p) + b"\0\0" + p),
}
