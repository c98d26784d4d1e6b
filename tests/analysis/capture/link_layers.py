"""The same packets in frames of every link type that carries IP, built byte by byte.

Each entry of ``LINKS`` has its link type and what makes a frame of an IPv4 or IPv6 packet; ``UNKNOWN_TO_TSHARK`` are those that
tshark 4.0 refuses.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from itertools import count
from typing import Final

from tests.analysis.capture.encapsulations import inner_frame

TARGET, SOURCE, RELAY = (bytes.fromhex(f"02000000{number:04x}") for number in (0x22, 0x11, 0x33))


def _type(packet: bytes) -> bytes:
    return b"\x86\xdd" if packet[0] >> 4 == 6 else b"\x08\x00"


def _is_ipv6(packet: bytes) -> bool:
    return packet[0] >> 4 == 6


def snap(packet: bytes) -> bytes:
    return bytes.fromhex("aaaa03000000") + _type(packet) + packet


def ppp(packet: bytes) -> bytes:
    return (b"\x00\x57" if _is_ipv6(packet) else b"\x00\x21") + packet


def hdlc(packet: bytes) -> bytes:
    return b"\x0f\0" + _type(packet) + packet


def relayed(packet: bytes) -> bytes:
    return b"\x18\x41\x03" + (b"\x8e" if _is_ipv6(packet) else b"\xcc") + packet


def wireless(
    body: bytes, *, flags: int = 0, control: int = 0x08, quality: bytes = b"", fourth: bytes = b"", number: int = 0
) -> bytes:
    head = bytes([control, flags]) + b"\0\0" + TARGET + SOURCE + RELAY + struct.pack("<H", number)
    return head + fourth + quality + body


def aggregate(*packets: bytes) -> bytes:
    parts = [TARGET + SOURCE + struct.pack("!H", len(snap(packet))) + snap(packet) for packet in packets]
    joined = b"".join(part + bytes(-len(part) % 4) for part in parts[:-1]) + parts[-1]
    return wireless(joined, flags=2, control=0x88, quality=b"\x80\0")


STAMPS: Final = count(10**6 << 32, 1 << 22)
"""Of records of a capture card, 2^-32 s."""


def record(kind: int, content: bytes, *, before: bytes = b"", padding: bytes = b"", wire: int | None = None) -> bytes:
    """Of a capture card (ERF)."""
    length = 16 + len(before) + len(padding) + len(content)
    wire = len(content) if wire is None else wire
    return (
        struct.pack("<Q", next(STAMPS)) + struct.pack("!BBHHH", kind, 4, length, 0, wire) + before + padding + content
    )


def logged(packet: bytes, order: str = "<") -> bytes:
    values = [(1, b"\x08\0\3\0"), (10, b"from here\0"), (9, packet)]
    told = b"".join(struct.pack(order + "HH", 4 + len(v), kind) + v + bytes(-len(v) % 4) for kind, v in values)
    return bytes([10 if _is_ipv6(packet) else 2, 0, 0, 0]) + told


def family(packet: bytes) -> int:
    return 24 if _is_ipv6(packet) else 2


Wrap = Callable[[bytes], bytes]
LINKS: Final[dict[str, tuple[int, Wrap]]] = {
    "ppp": (9, ppp),
    "ppp-hdlc": (9, lambda p: b"\xff\x03" + ppp(p)),
    "ppp-serial": (50, lambda p: b"\xff\x03" + ppp(p)),
    "ppp-short": (50, lambda p: b"\xff\x03" + ppp(p)[1:]),
    "ppp-cisco": (50, hdlc),
    "ppp-multicast": (9, lambda p: b"\x8f\0" + _type(p) + p),
    "ppp-mpls-to-many": (9, lambda p: b"\xff\x03\x02\x83\0\0\x51\x40" + p),
    "ppp-mpls": (9, lambda p: b"\xff\x03\x02\x81\0\0\x51\x40" + p),
    "pppoe": (51, lambda p: struct.pack("!BBHH", 0x11, 0, 7, len(p) + 2) + ppp(p)),
    "ppp-directed": (204, lambda p: b"\x01\xff\x03" + ppp(p)),
    "ppp-daemon": (166, lambda p: b"\x01\x03" + ppp(p)),
    "hdlc": (104, hdlc),
    "hdlc-mpls": (104, lambda p: b"\x0f\0\x88\x47\0\0\x51\x40" + p),
    "hdlc-directed": (205, lambda p: b"\x01" + hdlc(p)),
    "frame-relay": (107, relayed),
    "frame-relay-polled": (107, lambda p: relayed(p)[:2] + b"\x13" + relayed(p)[3:]),
    "frame-relay-padded": (107, lambda p: relayed(p)[:3] + b"\0" + relayed(p)[3:]),
    "frame-relay-snap": (107, lambda p: b"\x18\x41\x03\0\x80\0\0\0" + _type(p) + p),
    "frame-relay-cisco": (107, lambda p: b"\x18\x41" + _type(p) + p),
    "frame-relay-long": (107, lambda p: b"\x18\x40\x20" + relayed(p)[1:]),
    "frame-relay-bridged": (107, lambda p: b"\x18\x41\x03\0\x80\0\x80\xc2\0\7" + inner_frame(p)),
    "frame-relay-directed": (206, lambda p: b"\0" + relayed(p)),
    "token-ring": (6, lambda p: b"\x10\x40" + TARGET + SOURCE + snap(p)),
    "token-ring-routed": (6, lambda p: b"\x10\x40" + TARGET + b"\x82" + SOURCE[1:] + b"\x06\x30\0\x11\0\x20" + snap(p)),
    "fddi": (10, lambda p: b"\x54" + TARGET + SOURCE + snap(p)),
    "atm": (100, snap),
    "atm-bridged": (100, lambda p: bytes.fromhex("aaaa030080c200070000") + inner_frame(p)),
    "classical-ip": (106, lambda p: p),
    "raw-bsd": (14, lambda p: p),
    "fibre-channel": (122, lambda p: b"\x10\0" + TARGET + b"\x10\0" + SOURCE + snap(p)),
    "firewire": (138, lambda p: bytes(16) + _type(p) + p),
    "infiniband": (242, lambda p: bytes(40) + _type(p) + b"\0\0" + p),
    "enc": (109, lambda p: struct.pack("<III", family(p), 7, 0) + p),
    "enc-big": (109, lambda p: struct.pack(">III", family(p), 7, 0) + p),
    "pflog": (117, lambda p: struct.pack("BB", 61, family(p)) + bytes(62) + p),
    "nflog": (239, logged),
    "ipnet": (226, lambda p: struct.pack("!BBHIIIII", 1, 26 if _is_ipv6(p) else 2, 1, len(p), 2, 0, 0, 0)[:24] + p),
    "pktap": (258, lambda p: struct.pack("<III", 108, 1, 1) + bytes(96) + inner_frame(p)),
    "pktap-raw": (258, lambda p: struct.pack("<III", 108, 1, 12) + bytes(96) + p),
    "pktap-loopback": (149, lambda p: struct.pack("<III", 108, 1, 0) + bytes(96) + struct.pack("<I", family(p)) + p),
    "ppi-ethernet": (192, lambda p: struct.pack("<BBHI", 0, 0, 8, 1) + inner_frame(p)),
    "ppi-ppp": (192, lambda p: struct.pack("<BBHI", 0, 0, 8, 9) + b"\xff\x03" + ppp(p)),
    "ppi-wireless": (192, lambda p: struct.pack("<BBHIHH", 0, 0, 32, 105, 2, 20) + bytes(20) + wireless(snap(p))),
    "wireless": (105, lambda p: wireless(snap(p))),
    "wireless-to-network": (105, lambda p: wireless(snap(p), flags=1)),
    "wireless-between": (105, lambda p: wireless(snap(p), flags=3, fourth=SOURCE)),
    "wireless-quality": (105, lambda p: wireless(snap(p), control=0x88, quality=b"\0\0")),
    "wireless-throughput": (105, lambda p: wireless(snap(p), flags=0x82, control=0x88, quality=bytes(6))),
    "wireless-order": (105, lambda p: wireless(snap(p), flags=0x80)),
    "wireless-polled": (105, lambda p: wireless(snap(p), control=0x18)),
    "wireless-mesh": (105, lambda p: wireless(bytes(6) + snap(p), flags=3, control=0x88, quality=b"\0\1", fourth=SOURCE)),
    "wireless-mesh-far": (
        105, lambda p: wireless(b"\2" + bytes(17) + snap(p), flags=3, control=0x88, quality=b"\0\1", fourth=SOURCE)
    ),
    "wireless-ethernet": (105, lambda p: wireless(TARGET + SOURCE + _type(p) + p, flags=2)),
    "wireless-aggregate": (105, lambda p: aggregate(p)),
    "radiotap": (127, lambda p: b"\0\0\x08\0\0\0\0\0" + wireless(snap(p))),
    "radiotap-checked": (127, lambda p: b"\0\0\x09\0\2\0\0\0\x10" + wireless(snap(p)) + b"FCS!"),
    "radiotap-padded": (
        127, lambda p: b"\0\0\x09\0\2\0\0\0\x20" + wireless(b"\0\0" + snap(p), control=0x88, quality=b"\0\0")
    ),
    "radiotap-padded-untold": (
        127, lambda p: b"\0\0\x08\0\0\0\0\0" + wireless(b"\0\0" + snap(p), control=0x88, quality=b"\0\0")
    ),
    "radiotap-stamped": (
        127, lambda p: struct.pack("<BBHII4xQB", 0, 0, 25, 0x80000003, 0, 99, 0x30)
        + wireless(b"\0\0" + snap(p), control=0x88, quality=b"\0\0") + b"FCS!"
    ),
    "prism": (119, lambda p: struct.pack("<II", 0x44, 144) + bytes(136) + wireless(snap(p))),
    "prism-avs": (119, lambda p: struct.pack(">II", 0x80211001, 64) + bytes(56) + wireless(snap(p))),
    "avs": (163, lambda p: struct.pack(">II", 0x80211002, 64) + bytes(56) + wireless(snap(p))),
    "erf": (197, lambda p: record(2, inner_frame(p), padding=b"\0\0")),
    "erf-extended": (197, lambda p: record(0x82, inner_frame(p), before=b"\x80" + bytes(15), padding=b"\0\0")),
    "erf-hash": (197, lambda p: record(20, inner_frame(p), padding=b"\0\0")),
    "erf-ppp": (197, lambda p: record(1, b"\xff\x03" + ppp(p))),
    "erf-hdlc": (197, lambda p: record(10, hdlc(p))),
    "erf-ip": (197, lambda p: record(23 if _is_ipv6(p) else 22, p)),
    "broadcom": (281, lambda p: inner_frame(p)[:12] + bytes(4) + inner_frame(p)[12:]),
    "broadcom-before": (282, lambda p: bytes(4) + inner_frame(p)),
    "marvell": (284, lambda p: inner_frame(p)[:12] + b"\xc0\0\0\1" + inner_frame(p)[12:]),
    "marvell-typed": (285, lambda p: inner_frame(p)[:12] + b"\xda\xda\0\0\xc0\0\0\1" + inner_frame(p)[12:]),
}  # fmt: skip
UNKNOWN_TO_TSHARK: Final = frozenset(
    {"ppp-daemon", "hdlc-directed", "frame-relay-directed", "broadcom", "broadcom-before", "marvell", "marvell-typed"}
)
