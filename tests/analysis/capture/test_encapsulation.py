"""TCP and UDP in tags, labels and tunnels: the innermost packet counts."""

from __future__ import annotations

import struct
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import analysis
from analysis.capture.tables import DecoderName
from analysis.packets import CUT, TCP, UDP
from tests.analysis import capture_files as files
from tests.analysis.capture.encapsulations import (
    KINDS,
    OUTER,
    UNSUPPORTED,
    conversation,
    frame,
    inner_frame,
    outer_udp,
    vxlan,
)
from tests.analysis.capture.same_tables import read_with_tshark, same_from_both
from tests.analysis.capture_files import Frame
from tests.analysis.frames import ethernet, ipv4, ipv6, tcp
from tests.analysis.oracles.tools import tshark_fields

MS = 1_000_000
NETWORKS = {
    "vxlan": "VXLAN 7", "geneve": "GENEVE 7", "geneve_of_ip": "GENEVE 7", "gre": "GRE 7", "gre_with_everything": "GRE 7",
    "gre_of_ethernet": "GRE 7", "vxlan_in_mpls_in_gre": "VXLAN 7",
}  # fmt: skip


def capture(tmp_path: Path, frames: list[bytes], snap_length: int = 262_144) -> Path:
    path = tmp_path / "frames.pcap"
    path.write_bytes(files.pcap([Frame.whole(10**15 + MS * k, data, snap_length) for k, data in enumerate(frames)]))
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_the_innermost_packet_counts_and_the_outer_headers_are_bytes_of_the_wire(tmp_path: Path, kind: str) -> None:
    plain = [*conversation(), ipv6(tcp(5, 6, seq=8, payload=b"s" * 90))]
    frames = [KINDS[kind](packet, 7) for packet in plain]
    path = capture(tmp_path, frames)
    measured = analysis.analyse(path)
    assert measured.trust.verdict == "good"
    assert measured.metrics["connections"] == 2
    assert measured.metrics["retransmitted_bytes"] == 700
    assert measured.metrics["wire_bytes"] == sum(map(len, frames))
    seen = tshark_fields(path, "tcp.len", "udp.length")
    assert measured.metrics["payload_bytes"] == sum(int(tcp_len or 0) for tcp_len, _ in seen) + 30
    assert measured.flows[0].get("network") == NETWORKS.get(kind)
    assert len(same_from_both(path)) == len(frames)


def test_both_decoders_agree_wherever_the_snap_length_cuts(tmp_path: Path) -> None:
    whole = [wrap(conversation()[3], 7) for wrap in KINDS.values()]
    path = tmp_path / "cut.pcap"
    cuts = [Frame.whole(10**15, data, snap_length) for data in whole for snap_length in range(14, 170, 5)]
    path.write_bytes(files.pcap(cuts))
    native, second = analysis.read_capture(path, decoder="native"), read_with_tshark(path)
    np.testing.assert_array_equal(native.kind & (TCP | UDP), second.kind & (TCP | UDP))
    for name in ("seq", "ack", "window", "tcp_flags", "payload", "orig_len"):
        np.testing.assert_array_equal(getattr(native, name), getattr(second, name), err_msg=name)
    assert analysis.analyse(path).trust.verdict == "degraded"


@pytest.mark.parametrize("kind", [*KINDS, "plain", "vlan"])
def test_what_was_cut_before_the_packet_inside_is_marked_by_both_decoders(tmp_path: Path, kind: str) -> None:
    wrap = {
        "plain": lambda packet, _: ethernet(packet),
        "vlan": lambda packet, _: frame(0x8100, b"\0\5\x08\0" + packet),
    }
    whole = (KINDS | wrap)[kind](conversation()[3], 7)
    path = tmp_path / "cut.pcap"
    cuts = [Frame.whole(10**15 + k, whole, k) for k in range(len(whole) - 700)]
    path.write_bytes(files.pcap(cuts))
    native, second = analysis.read_capture(path, decoder="native"), read_with_tshark(path)
    for table in (native, second):
        assert np.all(table.kind & (TCP | CUT))
    path.write_bytes(files.pcap([Frame.whole(10**15 + 10**7 * k, whole, len(whole) - 741) for k in range(3)]))
    for decoder in ("native", "pyshark"):
        trust = analysis.analyse(path, decoder=decoder).trust
        assert trust.verdict == "unusable"
        assert trust.reasons[0].startswith("3 packets with truncated")


def test_frames_that_were_captured_whole_are_never_called_cut(tmp_path: Path) -> None:
    """However short they are: what is not there was not sent."""
    short = [frame(0x8100, b"\0"), frame(0x8847, b"\0\0"), frame(30, b""), outer_udp(4789, b"\x08\0\0"), b"\1" * 9]
    for name in ("native", "pyshark"):
        table = analysis.read_capture(capture(tmp_path, short), decoder=name)  # type: ignore[arg-type]
        assert not np.any(table.kind & CUT)


def test_equal_addresses_in_two_virtual_networks_are_two_connections(tmp_path: Path) -> None:
    path = capture(tmp_path, [vxlan(packet, network) for network in (1, 2) for packet in conversation()])
    measured = analysis.analyse(path)
    assert measured.metrics["connections"] == 2
    assert Counter(flow["network"] for flow in measured.flows) == {"VXLAN 1": 1, "VXLAN 2": 1}
    same_from_both(path)


def vlan(packet: bytes, number: int, priority: int = 0) -> bytes:
    return frame(0x8100, struct.pack("!HH", priority << 13 | number, 0x0800) + packet)


DECODERS = pytest.mark.parametrize("decoder", ["native", "pyshark"])


@DECODERS
def test_priorities_and_labels_that_differ_by_direction_are_one_connection(
    tmp_path: Path, decoder: DecoderName
) -> None:
    ways = [7, 8, 7, 7, 8, 7, 7]
    for number, frames in enumerate(
        (
            [KINDS["mpls"](packet, way) for way, packet in zip(ways, conversation(), strict=True)],
            [vlan(packet, 5, priority) for priority, packet in enumerate(conversation())],
            [vlan(packet, 0) if number % 2 else inner_frame(packet) for number, packet in enumerate(conversation())],
        )
    ):
        measured = analysis.analyse(capture(tmp_path, frames), decoder=decoder)
        assert (number, measured.trust.reasons) == (number, ())
        assert measured.metrics["retransmitted_bytes"] == 700


def test_other_content_of_a_tunnel_stays_a_datagram_of_the_tunnel(tmp_path: Path) -> None:
    arp = frame(0x0806, bytes(28))
    path = capture(tmp_path, [outer_udp(4789, bytes.fromhex("0800000000000700") + arp)])
    table = same_from_both(path)
    assert table.hosts == (OUTER["source"], OUTER["destination"])
    assert table.dport.tolist() == [4789]


@pytest.mark.parametrize(
    "hiding",
    [
        pytest.param(ethernet(ipv4(bytes(40), protocol=50, **OUTER)), id="esp"),
        pytest.param(frame(0x88E5, bytes(50)), id="macsec"),
        pytest.param(outer_udp(4500, bytes(60)), id="ipsec-over-udp"),
        pytest.param(frame(0x8847, bytes.fromhex("0004d140") + bytes(60)), id="pseudo-wire"),
        pytest.param(outer_udp(4341, bytes(8) + ipv4(tcp())), id="lisp"),
        pytest.param(outer_udp(4789, bytes(8) + inner_frame(ipv4(tcp()))), id="vxlan-without-network"),
        pytest.param(outer_udp(37008, b"\1\0\0\1\1" + inner_frame(ipv4(tcp()))), id="sniffed"),
        pytest.param(frame(0x8909, b"\1\1\0\1\0\7\x08\0" + ipv4(tcp())), id="metadata"),
        pytest.param(ethernet(ipv4(b"\0\0\x88\x0b\xff\3\0\x21" + ipv4(tcp()), protocol=47, **OUTER)), id="gre-of-ppp"),
    ],
)
def test_encrypted_and_unsupported_packets_degrade_the_trust(tmp_path: Path, hiding: bytes) -> None:
    trust = analysis.analyse(capture(tmp_path, [*map(inner_frame, conversation()), hiding])).trust
    assert trust.verdict == "degraded"
    assert "1 packet with encrypted data" in trust.reasons[0]


@pytest.mark.parametrize("kind", UNSUPPORTED)
def test_unsupported_encapsulations_are_counted_and_left_to_tshark(tmp_path: Path, kind: str) -> None:
    path = capture(tmp_path, [UNSUPPORTED[kind](packet) for packet in conversation()])
    native, second = (analysis.analyse(path, decoder=decoder) for decoder in ("native", "pyshark"))  # type: ignore[arg-type]
    assert (native.trust.verdict, native.metrics["packets"], native.metrics["connections"]) == ("degraded", 7, 0)
    assert native.trust.reasons[0].startswith("7 packets with encrypted data or an unsupported encapsulation")
    assert "--decoder pyshark" in native.trust.reasons[0]
    assert (second.metrics["connections"], second.metrics["retransmitted_bytes"]) == (1, 700)


def test_endless_encapsulation_is_bounded_and_lowers_the_trust(tmp_path: Path) -> None:
    packet = ipv4(tcp())
    for _ in range(40):
        packet = ipv4(packet, protocol=4, **OUTER)
    trust = analysis.analyse(capture(tmp_path, [ethernet(packet)])).trust
    assert trust.verdict == "degraded"
