"""tshark as second decoder gives the native one's table, and reads more."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from scapy.all import ICMP, IP, TCP, UDP, Ether, IPerror, IPv6, IPv6ExtHdrFragment, Raw, TCPerror, wrpcap  # type: ignore[attr-defined]

import analysis
from analysis import packets as bits
from analysis.capture.tables import DecoderName
from analysis.capture.tshark_table import stream_with_tshark
from analysis.packets import PacketTable
from tests.analysis import capture_files as files
from tests.analysis.capture.same_tables import assert_same_tables, read_with_tshark, same_from_both
from tests.analysis.frames import ethernet, ipv4, tcp


def written(tmp_path: Path, *frames: object, link_type: int | None = None) -> Path:
    path = tmp_path / "written.pcap"
    wrpcap(str(path), list(frames), linktype=link_type)
    return path


def test_it_reads_an_mpi_run_as_the_native_decoder_does(mpi_capture: Path) -> None:
    ours = read_with_tshark(mpi_capture)
    assert_same_tables(ours, analysis.read_capture(mpi_capture, decoder="native"))
    assert len(ours.btl_handshakes) >= 4
    assert ours.source["decoder"] == "pyshark"


def test_every_metric_flow_and_matrix_is_the_same_through_either_decoder(mpi_capture: Path) -> None:
    native, second = (analysis.analyse(mpi_capture, decoder=name).to_dict() for name in ("native", "pyshark"))
    of_the_file = {"captured", "received_by_filter", "dropped_by_kernel", "tail_lost"}  # pcapng statistics, not packets
    assert {k: v for k, v in native["metrics"].items() if k not in of_the_file} == {
        k: v for k, v in second["metrics"].items() if k not in of_the_file
    }
    assert native["flows"] == second["flows"]
    assert native["matrices"] == second["matrices"]
    assert native["mpi"]["metrics"] == second["mpi"]["metrics"]


def test_both_decoders_read_udp_icmp_ipv6_fragments_and_other_frames(tmp_path: Path) -> None:
    options = [("MSS", 1400), ("WScale", 9), ("SAckOK", b"")]
    path = written(
        tmp_path,
        Ether() / IP(src="10.1.1.1", dst="10.1.1.2") / TCP(sport=5, dport=6, flags="S", seq=2**32 - 1, options=options),
        Ether()
        / IP(src="10.1.1.2", dst="10.1.1.1")
        / TCP(sport=6, dport=5, flags="SA", ack=7, window=0)
        / Raw(b"x" * 30),
        Ether() / IPv6(src="fd00::1", dst="fd00::2") / UDP(sport=9, dport=10) / Raw(b"y" * 99),
        Ether() / IP(src="10.1.1.1", dst="10.1.1.2") / ICMP() / Raw(b"ping"),
        Ether() / IP(src="10.1.1.1", dst="10.1.1.2", frag=100, proto=6) / Raw(b"z" * 40),
        Ether() / IPv6(src="fd00::1", dst="fd00::2") / IPv6ExtHdrFragment(offset=7, nh=17) / Raw(b"w" * 40),
        Ether(type=0x88B5) / Raw(b"not ip" * 10),
    )
    same_from_both(path)


def test_a_packet_quoted_in_an_icmp_error_is_not_traffic(tmp_path: Path) -> None:
    quoted = IPerror(src="10.1.1.2", dst="10.1.1.1") / TCPerror(sport=5, dport=6, flags="S")
    path = written(tmp_path, Ether() / IP(src="10.1.1.1", dst="10.1.1.2") / ICMP(type=3, code=3) / quoted)
    table = read_with_tshark(path)
    assert table.kind.tolist() == [bits.IPV4 | bits.ICMP]
    assert (table.hosts, len(table.flow_endpoints)) == (("10.1.1.1", "10.1.1.2"), 0)


def test_a_cut_header_is_marked_not_guessed(tmp_path: Path) -> None:
    whole = Ether() / IP(src="10.1.1.1", dst="10.1.1.2") / TCP(sport=5, dport=6) / Raw(b"n" * 100)
    frame = Ether(bytes(whole)[:44])
    frame.wirelen = len(whole)
    table = read_with_tshark(written(tmp_path, frame))
    assert table.kind.tolist() == [bits.IPV4 | bits.CUT]
    assert table.orig_len.tolist() == [len(whole)]


def test_truncated_tail_is_reported_after_all_complete_records(mpi_pcap: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(mpi_pcap.read_bytes()[:5001])
    table = read_with_tshark(cut)
    whole = analysis.read_capture(mpi_pcap)
    assert table.source["truncated_tail"] is True
    np.testing.assert_array_equal(table.seq, whole.seq[: len(table)])
    assert len(table) > 20


def test_tables_of_one_file_share_their_numbers(mpi_capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("analysis.capture.tshark_table._CHUNK", 101)
    tables = list(stream_with_tshark(mpi_capture))
    assert len(tables) > 3
    assert [table.source["first_packet"] for table in tables[:3]] == [0, 101, 202]
    joined = PacketTable.joined(tables, source={})
    assert_same_tables(joined, analysis.read_capture(mpi_capture, decoder="native"))


def test_hosts_and_flows_beyond_the_capacity_make_a_capture_unusable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("analysis.capture.tshark_table.MOST_HOSTS", 3)
    monkeypatch.setattr("analysis.capture.tshark_table.MOST_FLOWS", 2)
    ends = [("10.0.0.1", 5), ("10.0.0.1", 6), ("10.0.0.1", 7), ("10.0.0.3", 5), ("10.0.0.4", 5)]
    frames = [ethernet(ipv4(tcp(port, 80, seq=k), source=source)) for k, (source, port) in enumerate(ends)]
    path = tmp_path / "many.pcap"
    path.write_bytes(files.pcap([files.Frame.whole(10**15 + k, frame) for k, frame in enumerate(frames)]))
    measured = analysis.analyse(path, decoder="pyshark")
    assert measured.metrics["connections"] == 2
    assert any("2 packets of flows without room" in reason for reason in measured.trust.reasons)
    assert any("without room in the table of hosts" in reason for reason in measured.trust.reasons)
    assert measured.trust.verdict == "unusable"


def test_custom_blocks_and_journal_entries_are_no_packets(tmp_path: Path) -> None:
    frames = [files.Frame.whole(10**15 + k, ethernet(ipv4(tcp(seq=k)))) for k in range(3)]
    odd = files.block(0x0BAD, bytes(12), "<") + files.block(9, b"__REALTIME_TIMESTAMP=1234\nMESSAGE=x\n", "<")
    path = tmp_path / "custom.pcapng"
    path.write_bytes(files.section() + files.interface() + odd.join(files.enhanced(frame) for frame in frames))
    same_from_both(path)


@pytest.mark.parametrize("decoder", ["native", "pyshark"])
def test_packets_longer_than_their_frame_lower_the_trust(tmp_path: Path, decoder: DecoderName) -> None:
    ports, rest = {"sport": 5, "dport": 6}, Raw(b"r" * 60)
    frames = [
        Ether() / IP(src="10.1.1.1", dst="10.1.1.2", len=900) / TCP(flags="A", **ports) / rest,
        Ether() / IP(src="10.1.1.1", dst="10.1.1.2", len=900) / UDP(len=880, **ports) / rest,
        Ether() / IPv6(src="fd00::1", dst="fd00::2", plen=900) / TCP(flags="A", **ports) / rest,
        Ether() / IP(src="10.1.1.1", dst="10.1.1.2") / ICMP(type=3, code=3) / IP(len=1500) / UDP(len=1480, **ports),
    ]
    trust = analysis.analyse(written(tmp_path, *frames), decoder=decoder).trust
    assert "3 packets with a length field beyond the end of the frame" in trust.reasons


def test_a_packet_inside_of_a_byte_stream_is_not_traffic(tmp_path: Path) -> None:
    """OpenFlow hands whole frames to a controller, inside of its packet."""
    inner = bytes(
        Ether() / IP(src="10.9.9.1", dst="10.9.9.2") / TCP(sport=7, dport=8, flags="S", seq=99) / Raw(b"i" * 9)
    )
    handed_on = struct.pack("!BBHIIHHBB", 1, 10, 18 + len(inner), 1, 1, len(inner), 3, 0, 0) + inner
    ends = IP(src="10.1.1.1", dst="10.1.1.2") / TCP(sport=5000, dport=6653, flags="PA", seq=5)
    path = written(tmp_path, Ether() / ends / Raw(handed_on))
    ours = read_with_tshark(path)
    assert_same_tables(ours, analysis.read_capture(path, decoder="native"))
    assert (ours.hosts, ours.seq.tolist(), ours.payload.tolist()) == (("10.1.1.1", "10.1.1.2"), [5], [len(handed_on)])


def test_a_tcp_header_that_contradicts_itself_has_no_segment(tmp_path: Path) -> None:
    path = written(tmp_path, Ether() / IP(src="10.1.1.1", dst="10.1.1.2") / TCP(dataofs=2) / Raw(b"b" * 60))
    assert read_with_tshark(path).kind.tolist() == [bits.IPV4 | bits.CUT]
    assert analysis.analyse(path, decoder="pyshark").trust.verdict == "unusable"


@pytest.mark.parametrize("fraction", [0, 999_999, 1_000_046, 1_999_999])
def test_fractions_of_more_than_a_second_are_that_long(tmp_path: Path, fraction: int) -> None:
    path = tmp_path / "stamps.pcap"
    data = bytearray(files.pcap([files.Frame.whole(10**15, ethernet(ipv4(tcp())))], nanoseconds=False))
    data[28:32] = struct.pack("<I", fraction)
    path.write_bytes(data)
    ours = read_with_tshark(path)
    assert (
        ours.time_ns.tolist()
        == analysis.read_capture(path, decoder="native").time_ns.tolist()
        == [10**15 + 1000 * fraction]
    )
    assert not ours.source["odd_stamps"]


def test_impossible_times_lower_the_trust(tmp_path: Path) -> None:
    path = tmp_path / "stamps.pcap"
    data = bytearray(files.pcap([files.Frame.whole(10**15, ethernet(ipv4(tcp())))], nanoseconds=False))
    data[28:32] = struct.pack("<I", 2_400_000)  # more than 31 bits hold, in nanoseconds
    path.write_bytes(data)
    for decoder in ("native", "pyshark"):
        trust = analysis.analyse(path, decoder=decoder).trust
        assert trust.verdict == "degraded"
        assert trust.reasons[0].startswith("1 packet with an impossible time")
    far = files.enhanced(files.Frame.whole(0, ethernet(ipv4(tcp()))), ticks=68_470_465_054 * 10**6)
    path.write_bytes(files.section() + files.interface(tsresol=6) + far)
    for decoder in ("native", "pyshark"):
        assert analysis.analyse(path, decoder=decoder).trust.reasons[0].startswith("1 packet with an impossible")
    assert read_with_tshark(path).time_ns.tolist() == analysis.read_capture(path, decoder="native").time_ns.tolist()
