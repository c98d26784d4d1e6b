"""RoCEv2: volume, operations, retransmissions, congestion, as by tshark."""

from __future__ import annotations

import struct
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import analysis
from analysis.traffic import roce
from tests.analysis import capture_files as files
from tests.analysis.capture.same_tables import read_with_tshark
from tests.analysis.capture_files import Frame
from tests.analysis.frames import ethernet, ipv4, ipv6, tcp, udp
from tests.analysis.frames import roce as packet
from tests.analysis.oracles.tools import tshark_fields

SEND_FIRST, SEND_LAST, SEND_ONLY, WRITE_ONLY, READ, READ_ONLY_ANSWER, ACK, CNP = (
    0x00,
    0x02,
    0x04,
    0x0A,
    0x0C,
    0x10,
    0x11,
    0x81,
)
BACK = {"source": "10.0.0.2", "destination": "10.0.0.1"}


def capture(tmp_path: Path, frames: list[bytes]) -> Path:
    path = tmp_path / "roce.pcap"
    path.write_bytes(files.pcap([Frame.whole(10**15 + 1000 * k, frame) for k, frame in enumerate(frames)]))
    return path


FRAMES = [
    packet(SEND_FIRST, 0xFFFFFE), packet(SEND_LAST, 0xFFFFFF), packet(SEND_ONLY, 0), packet(ACK, 0, pair=9, **BACK),
    packet(SEND_LAST, 0xFFFFFF, marked=True), packet(SEND_ONLY, 0, marked=True),
    packet(ACK, 0, pair=9, **BACK), packet(CNP, 0, pair=9, **BACK),
    packet(WRITE_ONLY, 1, size=900), packet(READ, 2), packet(READ_ONLY_ANSWER, 2, pair=9, size=1024, **BACK),
    packet(READ_ONLY_ANSWER, 2, pair=9, size=1024, **BACK), packet(WRITE_ONLY, 5, pair=33), packet(WRITE_ONLY, 5, pair=34),
]  # fmt: skip


def test_operations_repeated_numbers_marks_and_notifications_are_counted(tmp_path: Path) -> None:
    result = analysis.analyse(capture(tmp_path, FRAMES)).roce
    assert result is not None
    assert result["operations"] == {"SEND": 2, "RDMA WRITE": 3, "RDMA READ": 1, "ATOMIC": 0}  # one SEND came twice
    assert (result["packets"], result["wire_bytes"]) == (len(FRAMES), sum(map(len, FRAMES)))
    assert (result["retransmitted_packets"], result["congestion_notifications"], result["marked_packets"]) == (3, 1, 2)
    rows = {(row["source"], row["queue_pair"]): row for row in result["queue_pairs"]}
    assert rows["10.0.0.1", 17]["retransmitted_packets"] == 2
    assert rows["10.0.0.2", 9]["retransmitted_packets"] == 1
    assert rows["10.0.0.1", 33]["packets"] == 1


def test_it_has_rates_of_its_own_whatever_else_is_on_the_wire(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    stamps = 10**15 + np.sort(random.integers(0, 60_000_000, 3000))
    ours = {int(stamp): packet(WRITE_ONLY, k, size=int(random.integers(64, 1000))) for k, stamp in enumerate(stamps)}
    other = ethernet(ipv4(tcp(payload=bytes(1400))))
    frames = [Frame.whole(stamp, frame) for stamp, frame in ours.items()]
    frames += [Frame.whole(10**15 - 10**7 + 20_000 * k, other) for k in range(4000)]
    path = tmp_path / "mixed.pcap"
    path.write_bytes(files.pcap(sorted(frames, key=lambda frame: frame.time_ns), nanoseconds=True))
    result = analysis.analyse(path).roce
    assert result is not None
    times, sizes = np.array(list(ours)), np.array([len(frame) for frame in ours.values()])
    span = (times[-1] - times[0]) / 1e9
    assert result["rates"]["duration_s"] == pytest.approx(span)
    assert result["rates"]["throughput_bps"] == pytest.approx(8 * sizes.sum() / span)
    assert result["rates"]["packet_intensity_pps"] == pytest.approx((len(times) - 1) / span)
    fullest = max(sizes[(times > now - 10**7) & (times <= now)].sum() for now in times.tolist())
    assert result["rates"]["peak_10ms_bps"] == pytest.approx(8 * fullest / 0.01)
    assert sum(result["series"]["wire_bytes"]) == sizes.sum()
    assert set(result["not_available"]) == {"peak_100ms_bps"}, "the window is longer than the traffic"


def test_tshark_reads_the_same_headers(tmp_path: Path) -> None:
    six = ethernet(
        ipv6(udp(9, 4791, struct.pack("!BBHII", SEND_ONLY, 0, 1, 5, 6) + bytes(20)), next_header=17), kind=0x86DD
    )
    path = capture(tmp_path, [*FRAMES, six])
    fields = ("infiniband.bth.opcode", "infiniband.bth.psn", "infiniband.bth.destqp", "ip.dsfield.ecn")
    native, second = analysis.read_capture(path, decoder="native"), read_with_tshark(path)
    for row, (code, psn, pair, ecn) in enumerate(tshark_fields(path, *fields)):
        fields_of_row = (native.window[row], native.seq[row], native.ack[row], native.tcp_flags[row])
        assert fields_of_row == (int(code, 0), int(psn, 0), int(pair, 0), int(ecn or "0", 0))
    for name in ("window", "seq", "ack", "tcp_flags", "payload", "kind"):
        np.testing.assert_array_equal(getattr(native, name), getattr(second, name), err_msg=name)
    assert Counter(native.dport.tolist()) == {4791: len(FRAMES) + 1}
    ours, theirs = (analysis.analyse(path, decoder=name).roce for name in ("native", "pyshark"))
    assert ours == theirs


@pytest.mark.parametrize("decoder", ["native", "pyshark"])
@pytest.mark.parametrize("captured", [42, 50, 53])
def test_packets_whose_header_was_not_captured_count_in_volume_alone(
    tmp_path: Path, captured: int, decoder: str
) -> None:
    path = tmp_path / "cut.pcap"
    cut = [Frame.whole(10**15 + 1000 * k, packet(SEND_ONLY, k), captured if k < 3 else 200) for k in range(5)]
    path.write_bytes(files.pcap(cut))
    measured = analysis.analyse(path, decoder=decoder)  # type: ignore[arg-type]
    assert measured.roce is not None
    assert (measured.roce["packets"], measured.roce["wire_bytes"]) == (5, sum(frame.orig_len for frame in cut))
    assert (measured.roce["operations"]["SEND"], measured.roce["retransmitted_packets"]) == (2, 0)
    assert measured.trust.reasons[0].startswith("3 packets with truncated")


@pytest.mark.parametrize("decoder", ["native", "pyshark"])
def test_a_datagram_without_room_for_the_header_is_no_rocev2(tmp_path: Path, decoder: str) -> None:
    short = ethernet(ipv4(udp(50_000, 4791, bytes(11)), protocol=17))
    assert analysis.analyse(capture(tmp_path, [short]), decoder=decoder).roce is None  # type: ignore[arg-type]


def test_queue_pairs_beyond_the_limit_count_in_the_volume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roce, "MOST_QUEUE_PAIRS", 2)
    frames = [packet(SEND_ONLY, 1, pair=pair) for pair in range(5)]
    measured = analysis.analyse(capture(tmp_path, frames))
    assert measured.roce is not None
    assert (measured.roce["packets"], measured.roce["wire_bytes"]) == (5, sum(map(len, frames)))
    assert measured.roce["packets_beyond_limit"] == 3
    assert "3 packets of RoCEv2 queue pairs beyond the limit" in measured.trust.reasons[0]


def test_without_rocev2_nothing_is_claimed(tmp_path: Path) -> None:
    assert analysis.analyse(capture(tmp_path, [ethernet(ipv4(tcp()))])).roce is None
