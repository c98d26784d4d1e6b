"""Following a capture that is still being written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import analysis
from tests.analysis import capture_files as files
from tests.analysis.capture_files import Frame
from tests.analysis.frames import ethernet, ipv4, tcp

FRAMES = [Frame.whole(10**18 + k * 10**6, ethernet(ipv4(tcp(seq=k, payload=b"p" * k)))) for k in range(100)]
Writer = Callable[[list[Frame]], bytes]


@pytest.mark.parametrize("write", [files.pcap, files.pcapng])
@pytest.mark.parametrize("step", [1, 7, 1000, 10_000])
def test_it_counts_every_packet_once_however_the_file_grows(tmp_path: Path, write: Writer, step: int) -> None:
    path, data = tmp_path / "growing", write(FRAMES)
    with analysis.follow(path) as follower:
        assert follower.poll().packets == 0
        packets = 0
        with path.open("wb", buffering=0) as file:
            for at in range(0, len(data), step):
                file.write(data[at : at + step])
                if step > 1 or at % 500 == 0 or at > len(data) - 3:
                    new = follower.poll()
                    packets += new.interval_packets
                    assert new.packets == packets
        assert follower.poll().interval_packets == 0
    assert packets == len(FRAMES)
    assert follower.latest.wire_bytes == sum(frame.orig_len for frame in FRAMES)


def test_rates_are_those_between_two_looks(tmp_path: Path) -> None:
    path = tmp_path / "growing"
    path.write_bytes(files.pcap(FRAMES[:40]))
    with analysis.follow(path) as follower:
        first = follower.poll()
        assert (first.pps, first.bps) == (None, None)
        with path.open("ab") as file:
            file.write(files.pcap(FRAMES[40:])[24:])
        second = follower.poll()
    assert second.interval_packets == 60
    assert second.pps == pytest.approx(60 / second.interval_s)
    assert second.bps == pytest.approx(8 * sum(f.orig_len for f in FRAMES[40:]) / second.interval_s)


def test_damage_stops_the_counting_and_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "growing"
    path.write_bytes(files.pcap(FRAMES[:10]) + b"\xff" * 64)
    with analysis.follow(path) as follower:
        assert follower.poll().damaged
        assert follower.poll().packets == 10


def test_what_is_no_capture_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"this is not a capture, whatever its name")
    with analysis.follow(path) as follower, pytest.raises(analysis.UnreadableCapture):
        follower.poll()
