"""Old, unknown and contradictory captures: read right or refused."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import analysis
from analysis import DropCounters
from tests.analysis import capture_files as files
from tests.analysis.capture_files import Frame
from tests.analysis.frames import ethernet, ipv4, ipv6, tcp, udp

MS = 1_000_000
BACK = {"source": "10.0.0.2", "destination": "10.0.0.1"}
FRAMES = [
    Frame.whole(10**15 + MS * k, ethernet(ipv4(tcp(seq=1 + 400 * k, payload=b"d" * 400), identity=k)), 100)
    for k in range(9)
]


def analysed(tmp_path: Path, data: bytes | list[bytes], **options: object) -> analysis.CaptureAnalysis:
    if isinstance(data, list):
        data = files.pcap([Frame.whole(10**15 + MS * k, frame) for k, frame in enumerate(data)])
    path = tmp_path / "file"
    path.write_bytes(data)
    return analysis.analyse(path, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("version", [(1, 0), (2, 2), (2, 3), (2, 5), (543, 0)])
def test_other_versions_of_pcap_are_refused(tmp_path: Path, version: tuple[int, int]) -> None:
    data = bytearray(files.pcap(FRAMES))
    data[4:8] = struct.pack("<HH", *version)
    with pytest.raises(
        analysis.UnreadableCapture, match=rf"version {version[0]}\.{version[1]} are not read: use --decoder"
    ):
        analysed(tmp_path, bytes(data))


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("magic", [0xA1B2CD34, 0x1C0001AB, 0x1C0001AC])
def test_relatives_of_pcap_are_refused(tmp_path: Path, order: files.Order, magic: int) -> None:
    data = struct.pack(order + "I", magic) + files.pcap(FRAMES, order=order)[4:]
    with pytest.raises(
        analysis.UnreadableCapture, match=r"this relative of pcap .* is not read: use --decoder pyshark"
    ):
        analysed(tmp_path, data)


@pytest.mark.parametrize("order", ["<", ">"])
def test_frames_longer_than_the_announced_snap_length_are_read(tmp_path: Path, order: files.Order) -> None:
    measured = analysed(tmp_path, files.pcap(FRAMES, order=order, snap_length=60))
    assert (measured.metrics["packets"], measured.trust.verdict) == (len(FRAMES), "good")


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("version", [(0, 1), (1, 1), (2, 0)])
def test_unknown_versions_of_pcapng_are_refused(tmp_path: Path, order: files.Order, version: tuple[int, int]) -> None:
    unknown = files.block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, *version, -1), order)
    with pytest.raises(analysis.UnreadableCapture, match=f"version {version[0]}.{version[1]} are not supported"):
        analysed(tmp_path, unknown + files.interface(order))
    later = analysed(tmp_path, files.pcapng(FRAMES) + unknown)
    assert later.metrics["packets"] == len(FRAMES)
    assert "damaged" in later.trust.reasons[0]


def test_packets_of_an_undefined_interface_are_never_good(tmp_path: Path) -> None:
    stray = files.enhanced(FRAMES[0], number=7)
    trust = analysed(tmp_path, files.pcapng(FRAMES) + stray).trust
    assert trust.verdict == "degraded"
    assert trust.reasons == ("1 packet of an interface that the file does not define",)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(
    ("nanoseconds", "fraction", "verdict"),
    [
        (False, 1_999_999, "good"), (False, 2_000_000, "degraded"), (False, 2**32 - 1, "degraded"),
        (True, 1_999_999_999, "good"), (True, 2_000_000_000, "degraded"),
    ],
)  # fmt: skip
def test_a_fraction_that_two_seconds_fit_in_is_never_good(
    tmp_path: Path, order: files.Order, nanoseconds: bool, fraction: int, verdict: str
) -> None:
    """Readers disagree about it: some take 32 bits for its nanoseconds."""
    data = bytearray(files.pcap(FRAMES, order=order, nanoseconds=nanoseconds))
    last = len(data) - len(FRAMES[-1].data) - 16
    data[last + 4 : last + 8] = struct.pack(order + "I", fraction)
    measured = analysed(tmp_path, bytes(data))
    assert measured.trust.verdict == verdict
    assert len([reason for reason in measured.trust.reasons if "impossible time" in reason]) == (verdict != "good")
    seconds = fraction / (10**9 if nanoseconds else 10**6)
    assert measured.metrics["duration_s"] == pytest.approx(seconds)


def test_stamps_beyond_the_years_that_are_counted_are_never_good(tmp_path: Path) -> None:
    """They are held at 2^62 ns, so the duration is not theirs."""
    near, far = (files.enhanced(FRAMES[0], ticks=seconds * 10**6) for seconds in (4_611_686_017, 68_470_465_054))
    begin = files.section() + files.interface(tsresol=6)
    assert "beyond the years" in analysed(tmp_path, begin + near + far).trust.reasons[0]
    assert analysed(tmp_path, begin + near).trust.verdict == "good"


@pytest.mark.parametrize("link", [12, 14, 101, 228, 229])
def test_a_packet_of_neither_version_where_only_ip_can_be_is_never_good(tmp_path: Path, link: int) -> None:
    good = files.pcap([Frame(f.time_ns, f.data[14:], f.orig_len - 14) for f in FRAMES], link=link)
    assert analysed(tmp_path, good).trust.verdict == "good"
    odd = bytearray(good)
    odd[40] = 0x35
    trust = analysed(tmp_path, bytes(odd)).trust
    assert trust.verdict == "degraded"
    assert trust.reasons[0].startswith("1 packet with truncated or contradictory headers")


def test_a_snap_length_inside_of_the_tcp_header_is_never_good(tmp_path: Path) -> None:
    short = [Frame(f.time_ns, f.data[:46], f.orig_len) for f in FRAMES]
    assert analysed(tmp_path, files.pcap(short)).trust.verdict == "unusable"
    trust = analysed(tmp_path, files.pcap([*FRAMES[:-1], short[-1]])).trust
    assert trust.verdict == "degraded"
    assert "1 packet with truncated" in trust.reasons[0]


def test_a_header_that_is_captured_to_its_window_is_enough(tmp_path: Path) -> None:
    short = [Frame(f.time_ns, f.data[:50], f.orig_len) for f in FRAMES]
    measured = analysed(tmp_path, files.pcap(short))
    assert (measured.metrics["connections"], measured.metrics["payload_bytes"]) == (1, 400 * len(FRAMES))
    assert measured.trust.verdict == "good"
    assert measured.metrics == analysed(tmp_path, files.pcap(FRAMES)).metrics


def test_nothing_is_read_behind_the_length_that_ip_gives(tmp_path: Path) -> None:
    segment = tcp(payload=b"d" * 60)
    for length, connections in ((30, 0), (39, 0), (40, 1)):
        measured = analysed(tmp_path, [ethernet(ipv4(segment, total_length=length))] * 3)
        assert measured.metrics["connections"] == connections
        assert measured.metrics["payload_bytes"] == 0
        assert (measured.trust.verdict == "unusable") == (connections == 0)


@pytest.mark.parametrize(
    "packet",
    [ethernet(ipv4(tcp(payload=b"d" * 60), total_length=900)), ethernet(ipv6(tcp(payload=b"d" * 60), payload_length=900), kind=0x86DD)],
)  # fmt: skip
def test_a_packet_is_no_longer_than_its_frame(tmp_path: Path, packet: bytes) -> None:
    measured = analysed(tmp_path, [packet])
    assert measured.metrics["payload_bytes"] == 60
    assert measured.trust.reasons == ("1 packet with a length field beyond the end of the frame",)


def test_fragments_are_no_missing_packets(tmp_path: Path) -> None:
    segment = tcp(seq=1, payload=b"f" * 1200)
    frames = [
        ethernet(ipv4(segment[:800], identity=3, fragment=0x2000)),
        ethernet(ipv4(segment[800:], identity=3, fragment=100)),
        ethernet(ipv4(tcp(20_000, 40_000, seq=1, ack=1201), **BACK)),
    ]
    reasons = analysed(tmp_path, frames).trust.reasons
    assert len(reasons) == 2
    assert reasons[0] == "1 ACK for data that were never captured, or are in fragments"
    assert "later IP fragment" in reasons[1]


def test_a_filtered_file_is_not_called_a_tool_that_stopped_too_early(tmp_path: Path) -> None:
    exported = files.pcapng(FRAMES) + files.statistics(received=250, dropped=0)
    assert "filtered afterwards" in analysed(tmp_path, exported).trust.reasons[0]
    reported = analysed(tmp_path, exported, drops=DropCounters(captured=9, received=250, dropped=0))
    assert reported.trust.reasons[0].endswith("the tool stopped too early")
    assert "filtered" not in reported.trust.reasons[0]


def test_datagrams_without_room_for_their_header_lower_the_trust(tmp_path: Path) -> None:
    frames = [ethernet(ipv4(udp(5, 6, b"x" * 9), protocol=17, total_length=length)) for length in (25, 37)]
    trust = analysed(tmp_path, frames).trust
    assert trust.reasons[0].startswith("1 packet with truncated")


def claiming(length: int, **ip: int) -> bytes:
    """Return a datagram of 30 bytes with this length field."""
    return ipv4(struct.pack("!HHHH", 5, 6, length, 0) + bytes(30), protocol=17, **ip)


@pytest.mark.parametrize(
    ("length", "payload_bytes", "reason"),
    [(38, 30, ""), (28, 20, ""), (8, 0, ""), (50, 30, "beyond the end"), (65_535, 30, "beyond the end"), (7, 0, "headers")],
)  # fmt: skip
def test_datagrams_are_as_long_as_they_say_but_no_longer_than_their_packet(
    tmp_path: Path, length: int, payload_bytes: int, reason: str
) -> None:
    measured = analysed(tmp_path, [ethernet(claiming(length)), ethernet(claiming(38))])
    assert measured.metrics["payload_bytes"] == payload_bytes + 30
    assert (reason in measured.trust.reasons[0]) if reason else not measured.trust.reasons


def test_the_first_fragment_tells_the_length_of_all(tmp_path: Path) -> None:
    measured = analysed(tmp_path, [ethernet(claiming(2000, fragment=0x2000))])
    assert measured.metrics["payload_bytes"] == 30
    assert not measured.trust.reasons


@pytest.mark.parametrize(
    "packet",
    [
        ipv4(udp(50_000, 3544, ipv6(tcp(payload=b"d" * 60))), protocol=17),
        ipv4(udp(3544, 50_000, ipv6(tcp(payload=b"d" * 60))), protocol=17),
        ipv4(udp(50_000, 5247, bytes(8) + b"frame of a wireless network"), protocol=17),
        ipv4(udp(5247, 50_000, bytes(8) + b"frame of a wireless network"), protocol=17),
        ipv4(bytes([0x21]) + bytes(7) + ipv4(tcp(payload=b"d" * 60)), protocol=103),
    ],
    ids=["teredo", "answer of teredo", "capwap", "answer of capwap", "pim register"],
)
def test_unsupported_tunnels_are_counted(tmp_path: Path, packet: bytes) -> None:
    measured = analysed(tmp_path, [ethernet(packet)])
    assert (measured.trust.verdict, measured.capture["hidden"]) == ("degraded", 1)


@pytest.mark.parametrize("decoder", ["native", "pyshark"])
def test_packets_that_a_switch_quotes_were_not_sent_here(tmp_path: Path, decoder: str) -> None:
    quoted = ethernet(ipv4(tcp(payload=b"q" * 40), source="10.9.0.1", destination="10.9.0.2"))
    record = struct.pack("!IIIIII", 1, 16 + len(quoted), 1, len(quoted), 0, len(quoted)) + quoted
    sample = struct.pack("!IIIIIIII", 7, 1, 100, 100, 0, 1, 2, 1) + record
    sampled = struct.pack("!IIIIIII", 5, 1, 0x0A000001, 0, 1, 0, 1) + struct.pack("!II", 1, len(sample)) + sample
    measured = analysed(tmp_path, [ethernet(ipv4(udp(5000, 6343, sampled), protocol=17))], decoder=decoder)
    assert measured.metrics["payload_bytes"] == len(sampled)
    assert measured.matrices["hosts"]["labels"] == ["10.0.0.1", "10.0.0.2"]
