"""The same frames inside every wrapping of networks, built byte by byte.

Each entry of ``KINDS`` takes an inner IPv4 or IPv6 packet (for the ones that carry Ethernet: an inner frame) and a number that
names the virtual network, and gives a whole outer frame.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

from tests.analysis.frames import ethernet, ipv4, ipv6, tcp, udp

OUTER: Final = {"source": "172.16.0.1", "destination": "172.16.0.2"}
BACK: Final = {"source": "10.0.0.2", "destination": "10.0.0.1"}
SYN_OPTIONS: Final = b"\x02\x04\x05\xb4\x01\x03\x03\x07"
MACS: Final = bytes.fromhex("020000000022020000000011")


def conversation() -> list[bytes]:
    """IPv4 and UDP and IPv6 packets: a connection that repeats a segment."""
    return [
        ipv4(tcp(seq=0, ack=0, flags=0x02, options=SYN_OPTIONS)),
        ipv4(tcp(20_000, 40_000, seq=9, ack=1, flags=0x12, options=SYN_OPTIONS), **BACK),
        ipv4(tcp(seq=1, ack=10)),
        ipv4(tcp(seq=1, ack=10, payload=b"d" * 700), identity=1),
        ipv4(tcp(20_000, 40_000, seq=10, ack=701), **BACK),
        ipv4(tcp(seq=1, ack=10, payload=b"d" * 700), identity=2),
        ipv4(udp(7000, 7001, b"u" * 30), protocol=17),
    ]


def frame(ethertype: int, content: bytes) -> bytes:
    return MACS + struct.pack("!H", ethertype) + content


def outer_udp(port: int, content: bytes, *, sport: int = 50_000) -> bytes:
    return ethernet(ipv4(udp(sport, port, content), protocol=17, **OUTER))


def inner_frame(packet: bytes) -> bytes:
    return frame(_ethertype(packet), packet)


def _ethertype(packet: bytes) -> int:
    return 0x86DD if packet[0] >> 4 == 6 else 0x0800


def vxlan(packet: bytes, network: int) -> bytes:
    return outer_udp(4789, struct.pack("!II", 0x08000000, network << 8) + inner_frame(packet))


def geneve(packet: bytes, network: int) -> bytes:
    option = bytes.fromhex("0102800100000007")
    head = struct.pack("!BBHI", len(option) // 4, 0, 0x6558, network << 8)
    return outer_udp(6081, head + option + inner_frame(packet))


def geneve_of_ip(packet: bytes, network: int) -> bytes:
    return outer_udp(6081, struct.pack("!BBHI", 0, 0, _ethertype(packet), network << 8) + packet)


def gre(packet: bytes, network: int) -> bytes:
    return ethernet(ipv4(struct.pack("!HHI", 0x2000, _ethertype(packet), network) + packet, protocol=47, **OUTER))


def gre_with_everything(packet: bytes, network: int) -> bytes:
    """Checksum, key and sequence number."""
    head = struct.pack("!HHIII", 0xB000, _ethertype(packet), 0, network, 9)
    return ethernet(ipv4(head + packet, protocol=47, **OUTER))


def gre_of_ethernet(packet: bytes, network: int) -> bytes:
    head = struct.pack("!HHI", 0x2000, 0x6558, network)
    return ethernet(ipv4(head + inner_frame(packet), protocol=47, **OUTER))


def ipip(packet: bytes, network: int) -> bytes:
    return ethernet(ipv4(packet, protocol=41 if packet[0] >> 4 == 6 else 4, **OUTER))


def ip_in_ipv6(packet: bytes, network: int) -> bytes:
    return ethernet(ipv6(packet, next_header=41 if packet[0] >> 4 == 6 else 4), kind=0x86DD)


def mpls(packet: bytes, network: int) -> bytes:
    labels = struct.pack("!II", 77 << 12 | 64, (network & 0xFFFFF) << 12 | 0x100 | 64)
    return frame(0x8847, labels + packet)


def vxlan_in_mpls_in_gre(packet: bytes, network: int) -> bytes:
    inside = ipv4(udp(50_001, 4789, struct.pack("!II", 0x08000000, network << 8) + inner_frame(packet)), protocol=17,
                  source="192.168.1.1", destination="192.168.1.2")  # fmt: skip
    labelled = struct.pack("!I", 33 << 12 | 0x100 | 64) + inside
    return ethernet(ipv4(struct.pack("!HH", 0, 0x8847) + labelled, protocol=47, **OUTER))


KINDS: Final[dict[str, Callable[[bytes, int], bytes]]] = {
    name: wrap
    for name, wrap in globals().items()
    if name in (
        "vxlan", "geneve", "geneve_of_ip", "gre", "gre_with_everything", "gre_of_ethernet", "ipip", "ip_in_ipv6", "mpls",
        "vxlan_in_mpls_in_gre",
    )
}  # fmt: skip
UNSUPPORTED: Final[dict[str, Callable[[bytes], bytes]]] = {
    "pppoe": lambda p: frame(0x8864, struct.pack("!BBHHH", 0x11, 0, 7, len(p) + 2, 0x0021) + p),
    "e-tag": lambda p: MACS + struct.pack("!HHHH", 0x893F, 0, 7, 0) + inner_frame(p)[12:],
    "backbone": lambda p: MACS + struct.pack("!HHHI", 0x88A8, 5, 0x88E7, 7) + inner_frame(p),
    "hsr": lambda p: frame(0x892F, b"\0\x3a\0\1\x08\0" + p),
    "snap": lambda p: frame(8 + len(p), bytes.fromhex("aaaa030000000800") + p),
    "etherip": lambda p: ethernet(ipv4(b"\x30\0" + inner_frame(p), protocol=97, **OUTER)),
}
"""Frames around an IPv4 packet that tshark alone reads."""
