"""Builds frames byte by byte, for tests that need thousands of them."""

from __future__ import annotations

import ipaddress
import struct


def tcp(
    sport: int = 40_000, dport: int = 20_000, *, seq: int = 1, ack: int = 1, flags: int = 0x10, window: int = 500,
    options: bytes = b"", payload: bytes = b"",
) -> bytes:  # fmt: skip
    options += b"\1" * (-len(options) % 4)
    offset = (20 + len(options)) // 4
    return struct.pack("!HHIIBBHHH", sport, dport, seq, ack, offset << 4, flags, window, 0, 0) + options + payload


def udp(sport: int, dport: int, payload: bytes) -> bytes:
    return struct.pack("!HHHH", sport, dport, 8 + len(payload), 0) + payload


def ipv4(
    content: bytes, *, source: str = "10.0.0.1", destination: str = "10.0.0.2", protocol: int = 6, identity: int = 0,
    options: bytes = b"", fragment: int = 0, total_length: int | None = None,
) -> bytes:  # fmt: skip
    options += b"\1" * (-len(options) % 4)
    header = 20 + len(options)
    total = header + len(content) if total_length is None else total_length
    ends = ipaddress.IPv4Address(source).packed + ipaddress.IPv4Address(destination).packed
    fixed = struct.pack("!BBHHHBBH", 0x40 | header // 4, 0, total, identity & 0xFFFF, fragment, 64, protocol, 0)
    return fixed + ends + options + content


def ipv6(
    content: bytes, *, source: str = "fd00::1", destination: str = "fd00::2", next_header: int = 6,
    payload_length: int | None = None,
) -> bytes:  # fmt: skip
    ends = ipaddress.IPv6Address(source).packed + ipaddress.IPv6Address(destination).packed
    length = len(content) if payload_length is None else payload_length
    return struct.pack("!IHBB", 0x60000000, length, next_header, 64) + ends + content


def ethernet(content: bytes, *, kind: int = 0x0800, vlans: tuple[tuple[int, int], ...] = (), pad: bool = True) -> bytes:
    """Return a frame padded to 60 bytes as on a wire.

    ``vlans``: (tag protocol, VLAN number) from the outside in.
    """
    tags = b"".join(struct.pack("!HH", protocol, number) for protocol, number in vlans)
    frame = bytes.fromhex("020000000002020000000001") + tags + struct.pack("!H", kind) + content
    return frame + b"\0" * (60 - len(frame)) if pad else frame


def roce(
    code: int, number: int, *, pair: int = 17, size: int = 64, marked: bool = False, source: str = "10.0.0.1",
    destination: str = "10.0.0.2",
) -> bytes:  # fmt: skip
    """Return RoCEv2 in a frame: base header, ``size`` bytes, CRC; ``marked``: ECN 11."""
    transport = struct.pack("!BBHII", code, 0, 0xFFFF, pair, number & 0xFFFFFF) + bytes(size) + bytes(4)
    header = bytearray(ipv4(udp(50_000, 4791, transport), protocol=17, source=source, destination=destination))
    header[1] |= 3 if marked else 0
    return ethernet(bytes(header))
