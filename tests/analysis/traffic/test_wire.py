"""Joined segments are split again: metrics with and without offloads agree."""

from __future__ import annotations

from pathlib import Path

import pytest

import analysis
from analysis.traffic.uncoalesce import ERROR
from tests.analysis import capture_files as files
from tests.analysis.capture_files import Frame
from tests.analysis.frames import ethernet, ipv4, tcp
from tests.analysis.recordings.undisturbed import analysed_stream

MSS_1460 = b"\x02\x04\x05\xb4"
TIMES = b"\x01\x01\x08\x0a" + bytes(8)
HEADERS = 14 + 20 + 20


def frame(time_ns: int, *, seq: int, size: int, flags: int = 0x10, options: bytes = b"", back: bool = False) -> Frame:
    source, destination = ("10.0.0.2", "10.0.0.1") if back else ("10.0.0.1", "10.0.0.2")
    ports = (20_000, 40_000) if back else (40_000, 20_000)
    segment = tcp(*ports, seq=seq, payload=b"d" * size, flags=flags, options=options)
    packet = ipv4(segment, source=source, destination=destination, identity=seq % 65_536)
    return Frame.whole(10**15 + time_ns, ethernet(packet))


def analysed(tmp_path: Path, *frames: Frame, **options: object) -> analysis.CaptureAnalysis:
    opening = [
        frame(0, seq=0, size=0, flags=0x02, options=MSS_1460),
        frame(1, seq=0, size=0, flags=0x12, options=MSS_1460, back=True),
    ]
    path = tmp_path / "file.pcap"
    path.write_bytes(files.pcap([*opening, *frames]))
    return analysis.analyse(path, **options)  # type: ignore[arg-type]


def test_a_super_segment_counts_as_full_segments_and_a_rest(tmp_path: Path) -> None:
    result = analysed(tmp_path, frame(5, seq=1, size=3 * 1460 + 10))
    assert result.metrics["packets"] == 2 + 4
    assert result.metrics["wire_bytes"] == 2 * 60 + 4 * HEADERS + 3 * 1460 + 10
    (flow,) = result.flows
    assert (flow["packets"], flow["data_segments"]) == (6, 4)


def test_options_take_their_room_in_a_segment(tmp_path: Path) -> None:
    """The MSS counts options as payload: timestamps leave 1448 (RFC 6691)."""
    result = analysed(tmp_path, frame(5, seq=1, size=2 * 1448, options=TIMES))
    assert result.metrics["packets"] == 2 + 2


def test_estimated_capture_has_no_times_of_single_packets(tmp_path: Path) -> None:
    rows = [frame(1000 * k, seq=1 + 2920 * k, size=2920) for k in range(1, 40)]
    result = analysed(tmp_path, *rows)
    assert result.trust.verdict == "estimated"
    assert "39 segments were joined by offloads and split again" in result.trust.reasons[0]
    assert "data packets to 2" in result.trust.reasons[0]
    for name in ("interarrival_median_s", "interarrival_p99_s", "peak_1ms_bps"):
        assert name not in result.metrics
        assert result.not_available[name]
    assert "offloads" in result.not_available["interarrival_p99_s"]
    assert result.metrics["interarrival_mean_s"] == pytest.approx(39_000e-9 / (2 + 78 - 1))
    assert result.metrics["retransmitted_segments"] == 0


def test_a_retransmitted_super_segment_is_as_many_retransmissions(tmp_path: Path) -> None:
    again = frame(300_000_000, seq=1, size=2920)
    result = analysed(tmp_path, frame(5, seq=1, size=2920), frame(9, seq=2921, size=100), again)
    assert result.metrics["retransmitted_segments"] == 2


def test_the_end_of_a_connection_ends_it_once(tmp_path: Path) -> None:
    whole = analysed(tmp_path, frame(5, seq=1, size=2920, flags=0x11))
    separate = analysed(tmp_path, frame(5, seq=1, size=1460), frame(6, seq=1461, size=1460, flags=0x11))
    for name in ("packets", "wire_bytes", "connections"):
        assert whole.metrics.get(name) == separate.metrics.get(name)


def test_what_cannot_be_split_still_flags_the_capture(tmp_path: Path) -> None:
    """A SYN that forges a segment size of one byte must not make thousands of rows."""
    tiny = [
        frame(0, seq=0, size=0, flags=0x02, options=b"\x02\x04\x00\x01"),
        frame(1, seq=0, size=0, flags=0x12, options=b"\x02\x04\x00\x01", back=True),
        frame(5, seq=1, size=9000),
    ]
    path = tmp_path / "tiny.pcap"
    path.write_bytes(files.pcap(tiny))
    result = analysis.analyse(path)
    assert result.metrics["packets"] == 3
    assert result.trust.verdict == "degraded"


def data_packets(result: analysis.CaptureAnalysis) -> float:
    return float(sum(flow["data_segments"] for flow in result.flows))


@pytest.mark.parametrize("device", ["v2", "v1"])
def test_streams_with_and_without_offloads_have_equal_metrics(tmp_path: Path, device: str) -> None:
    """At the sender's end, where its card would cut, and at the receiver's."""
    sent = ("-n", "8M")
    plain, joined = (
        analysed_stream(tmp_path / f"{on}.pcapng", *sent, device=device, offloads=on) for on in (False, True)
    )
    assert plain.trust.verdict == "good", plain.trust.reasons
    assert (joined.trust.verdict, joined.metrics["super_segments"] > 10) == ("estimated", True)
    # iperf3 gives what is left in its buffer up at the end, so that the two are not equally long.
    joined_packets, plain_packets = (data_packets(each) / each.metrics["goodput_bytes"] for each in (joined, plain))
    assert joined_packets == pytest.approx(plain_packets, rel=ERROR)
    for each in (joined, plain):
        assert each.metrics["goodput_bytes"] > 3e6
        assert each.metrics["retransmitted_segments"] < 0.01 * data_packets(each)
