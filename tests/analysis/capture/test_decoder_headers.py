"""Headers of every kind, written by scapy, are read as scapy meant them."""

from __future__ import annotations

from pathlib import Path

import pytest
from scapy.all import (
    ARP,
    ICMP,
    IP,
    TCP,
    UDP,
    CookedLinux,
    CookedLinuxV2,
    Dot1AD,
    Dot1Q,
    Ether,
    ICMPv6EchoRequest,
    IPOption_RR,
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrRouting,
    Loopback,
    Packet,
    Raw,
)  # fmt: skip

import analysis
from analysis.packets import CUT, FRAGMENT, IPV4, IPV6, NO_FLOW, NO_SCALE
from analysis.packets import ICMP as ICMP_BIT
from analysis.packets import TCP as TCP_BIT
from analysis.packets import UDP as UDP_BIT
from tests.analysis import capture_files as files
from tests.analysis.capture_files import Frame

MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")
ETHER = Ether(src=MACS[0], dst=MACS[1])
"""Both addresses are set, so that scapy does not resolve them."""
V4 = {"src": "192.0.2.1", "dst": "192.0.2.9"}
V6 = {"src": "2001:db8::1", "dst": "2001:db8::9"}
SEGMENT = TCP(sport=1234, dport=80, seq=7, ack=9, flags="PA", window=77) / Raw(b"z" * 321)
ETHERNET, NULL, RAW, SLL, LOOP, SLL2 = 1, 0, 101, 113, 108, 276


def read(tmp_path: Path, *frames: bytes, link: int = ETHERNET, snap_length: int = 65_535) -> analysis.PacketTable:
    path = tmp_path / "file.pcap"
    path.write_bytes(files.pcap([Frame.whole(k * 10**6, f, snap_length) for k, f in enumerate(frames)], link=link))
    return analysis.read_capture(path)


@pytest.mark.parametrize(
    ("packet", "link"),
    [
        pytest.param(ETHER / IP(**V4) / SEGMENT, ETHERNET, id="ethernet"),
        pytest.param(ETHER / Dot1Q(vlan=5) / IP(**V4) / SEGMENT, ETHERNET, id="802.1Q"),
        pytest.param(ETHER / Dot1AD(vlan=5) / Dot1Q(vlan=6) / IP(**V4) / SEGMENT, ETHERNET, id="QinQ"),
        pytest.param(ETHER / Dot1Q() / Dot1Q() / Dot1Q() / Dot1Q() / IP(**V4) / SEGMENT, ETHERNET, id="four tags"),
        pytest.param(CookedLinux(proto=0x0800) / IP(**V4) / SEGMENT, SLL, id="SLL"),
        pytest.param(CookedLinuxV2(proto=0x0800) / IP(**V4) / SEGMENT, SLL2, id="SLL2"),
        pytest.param(IP(**V4) / SEGMENT, RAW, id="raw"),
        pytest.param(IP(**V4) / SEGMENT, 12, id="raw 12"),
        pytest.param(IP(**V4) / SEGMENT, 228, id="raw IPv4"),
        pytest.param(Loopback(type=2) / IP(**V4) / SEGMENT, NULL, id="BSD loopback"),
        pytest.param(b"\0\0\0\2" + bytes(IP(**V4) / SEGMENT), LOOP, id="OpenBSD loopback"),
        pytest.param(ETHER / IP(options=[IPOption_RR(routers=["1.2.3.4"] * 3)], **V4) / SEGMENT, 1, id="options"),
        pytest.param(ETHER / IPv6(**V6) / SEGMENT, ETHERNET, id="IPv6"),
        pytest.param(IPv6(**V6) / SEGMENT, 229, id="raw IPv6"),
        pytest.param(Loopback(type=24) / IPv6(**V6) / SEGMENT, NULL, id="BSD loopback IPv6"),
        pytest.param(
            ETHER / IPv6(**V6) / IPv6ExtHdrHopByHop() / IPv6ExtHdrRouting() / IPv6ExtHdrDestOpt() / SEGMENT,
            ETHERNET, id="extension headers",
        ),
        pytest.param(ETHER / IPv6(**V6) / IPv6ExtHdrFragment(offset=0, m=1) / SEGMENT, 1, id="first fragment"),
    ],
)  # fmt: skip
def test_tcp_is_found_behind(tmp_path: Path, packet: Packet | bytes, link: int) -> None:
    table = read(tmp_path, bytes(packet), link=link)
    ends = V4 if table.kind[0] & IPV4 else V6
    assert [table.hosts[table.src[0]], table.hosts[table.dst[0]]] == [ends["src"], ends["dst"]]
    assert table.kind[0] & (TCP_BIT | CUT) == TCP_BIT
    fields = (table.sport, table.dport, table.seq, table.ack, table.window, table.tcp_flags, table.payload)
    assert [int(column[0]) for column in fields] == [1234, 80, 7, 9, 77, 0x18, 321]
    assert table.flow[0] == 0
    assert table.flow_endpoints["hosts"].tolist() == [[table.src[0], table.dst[0]]]
    assert table.flow_endpoints["ports"].tolist() == [[1234, 80]]


def test_ethernet_padding_is_no_payload(tmp_path: Path) -> None:
    short = bytes(ETHER / IP(**V4) / TCP(flags="A"))
    table = read(tmp_path, short + b"\0" * (60 - len(short)))
    assert (table.orig_len[0], table.payload[0]) == (60, 0)


def test_udp_icmp_and_what_is_not_ip(tmp_path: Path) -> None:
    frames = [
        ETHER / IP(**V4) / UDP(sport=5, dport=6) / Raw(b"1234567"),
        ETHER / IP(**V4) / ICMP(),
        ETHER / IPv6(**V6) / ICMPv6EchoRequest(),
        ETHER / ARP(hwsrc=MACS[0], psrc="192.0.2.1", pdst="192.0.2.9"),
        Ether(src=MACS[0], dst=MACS[1], type=0x1234) / Raw(b"?" * 50),
    ]
    table = read(tmp_path, *map(bytes, frames))
    assert table.kind.tolist() == [IPV4 | UDP_BIT, IPV4 | ICMP_BIT, IPV6 | ICMP_BIT, 0, 0]
    assert (table.sport[0], table.dport[0], table.payload[0]) == (5, 6, 7)
    assert (table.flow == NO_FLOW).tolist() == [False, True, True, True, True]
    assert table.source["not_ip"] == 2


def test_later_fragments_have_no_ports(tmp_path: Path) -> None:
    first = ETHER / IP(flags="MF", **V4) / SEGMENT
    later = ETHER / IP(frag=100, proto=6, **V4) / Raw(bytes(SEGMENT))
    later_v6 = ETHER / IPv6(**V6) / IPv6ExtHdrFragment(offset=100, nh=6) / Raw(bytes(SEGMENT))
    table = read(tmp_path, bytes(first), bytes(later), bytes(later_v6))
    assert table.kind.tolist() == [IPV4 | TCP_BIT, IPV4 | FRAGMENT, IPV6 | FRAGMENT]
    assert table.flow.tolist()[1:] == [NO_FLOW, NO_FLOW]
    assert table.payload.tolist() == [321, 0, 0]


def test_super_segments_without_an_ip_length_take_that_of_the_wire(tmp_path: Path) -> None:
    big = bytes(ETHER / IP(len=0, **V4) / TCP(flags="A") / Raw(b"b" * 70_000))
    big_v6 = bytes(ETHER / Dot1Q() / IPv6(plen=0, **V6) / TCP(flags="A") / Raw(b"b" * 70_000))
    table = read(tmp_path, big, big_v6, snap_length=128)
    assert table.payload.tolist() == [70_000, 70_000]


def test_options_of_the_syn_are_kept(tmp_path: Path) -> None:
    options = [("NOP", None), ("MSS", 1460), ("SAckOK", b""), ("Timestamp", (1, 0)), ("WScale", 7)]
    syn = ETHER / IP(**V4) / TCP(flags="S", options=options)
    bare = ETHER / IP(**V4) / TCP(flags="S")
    table = read(tmp_path, bytes(syn), bytes(bare))
    assert table.mss.tolist() == [1460, 0]
    assert table.wscale.tolist() == [7, NO_SCALE]


@pytest.mark.parametrize("ip", [IP(**V4), IPv6(**V6), IPv6(**V6) / IPv6ExtHdrDestOpt()], ids=["v4", "v6", "v6-ext"])
def test_truncated_headers_are_marked(tmp_path: Path, ip: Packet) -> None:
    whole = bytes(ETHER / ip / TCP(sport=1, dport=2, options=[("Timestamp", (3, 4))]) / Raw(b"data"))
    payload_at = len(whole) - 4
    header_at = payload_at - 32
    path = tmp_path / "file.pcap"
    cuts = range(len(whole) + 1)
    path.write_bytes(files.pcap([Frame(k, whole[:k], len(whole)) for k in cuts]))
    table = analysis.read_capture(path)
    for k in cuts:
        kind = int(table.kind[k])
        assert bool(kind & CUT) == (k < payload_at), k
        assert bool(kind & TCP_BIT) == (k >= header_at + 16), k
        assert (table.sport[k], table.dport[k]) == ((1, 2) if k >= header_at + 4 else (0, 0)), k
        assert table.payload[k] == (4 if k >= header_at + 16 else 0), k


def test_a_header_that_contradicts_itself_is_not_believed(tmp_path: Path) -> None:
    frames = [
        ETHER / IP(ihl=3, **V4) / SEGMENT,
        ETHER / IP(version=5, **V4) / SEGMENT,
        ETHER / IP(**V4) / TCP(dataofs=3) / Raw(b"x" * 40),
        ETHER / IP(len=30, **V4) / SEGMENT,
    ]
    table = read(tmp_path, *map(bytes, frames))
    assert [bool(kind & TCP_BIT) for kind in table.kind] == [False, False, False, False]
    assert [bool(kind & CUT) for kind in table.kind] == [True, True, True, True]
    assert table.payload[3] == 0
