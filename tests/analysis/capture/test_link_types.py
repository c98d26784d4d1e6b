"""Link types of clusters are read as by tshark, others are refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import analysis
from analysis.packets import CUT, TCP
from tests.analysis import capture_files as files
from tests.analysis.capture.encapsulations import conversation
from tests.analysis.capture.link_layers import LINKS, radiotap
from tests.analysis.capture.same_tables import read_with_tshark, same_from_both
from tests.analysis.capture_files import Frame
from tests.analysis.frames import ethernet, ipv6, tcp

PACKETS = [*conversation(), ipv6(tcp(5, 6, seq=8, payload=b"s" * 90))]
MS = 1_000_000


def written(path: Path, link: int, frames: list[bytes]) -> Path:
    path.write_bytes(files.pcap([Frame.whole(10**15 + MS * k, data) for k, data in enumerate(frames)], link=link))
    return path


@pytest.mark.parametrize("name", LINKS)
def test_packets_of_each_link_type_are_those_of_tshark(tmp_path: Path, name: str) -> None:
    link, wrap = LINKS[name]
    path = written(tmp_path / "link.pcap", link, [wrap(packet) for packet in PACKETS])
    measured = analysis.analyse(path)
    assert (measured.capture["decoder"], measured.trust.verdict, measured.capture["notes"]) == ("native", "good", [])
    assert (measured.metrics["connections"], measured.metrics["retransmitted_bytes"]) == (2, 700)
    assert measured.metrics["payload_bytes"] == 2 * 700 + 30 + 90
    same_from_both(path)


@pytest.mark.parametrize("name", LINKS)
def test_frames_cut_anywhere_are_marked_or_read_as_by_tshark(tmp_path: Path, name: str) -> None:
    link, wrap = LINKS[name]
    whole = wrap(PACKETS[3])
    cuts = [Frame.whole(10**15 + k, whole, k) for k in range(len(whole) - 690)]
    path = tmp_path / "cut.pcap"
    path.write_bytes(files.pcap(cuts, link=link))
    native, second = analysis.read_capture(path), read_with_tshark(path)
    both = native.kind & second.kind & TCP > 0
    for column in ("orig_len", "cap_len"):
        np.testing.assert_array_equal(getattr(native, column), getattr(second, column), err_msg=column)
    for column in ("seq", "ack", "window", "tcp_flags", "payload"):
        np.testing.assert_array_equal(getattr(native, column)[both], getattr(second, column)[both], err_msg=column)
    assert np.all(native.kind & (TCP | CUT))
    path.write_bytes(files.pcap(cuts[1:-40], link=link))
    assert analysis.analyse(path).trust.verdict != "good"


def test_native_infiniband_is_counted_and_degraded(tmp_path: Path) -> None:
    measured = analysis.analyse(written(tmp_path / "infiniband.pcap", 247, [bytes(60), bytes(80)]))
    metrics = measured.metrics
    assert (metrics["packets"], metrics["wire_bytes"], metrics["duration_s"]) == (2, 140, 0.001)
    assert (measured.trust.verdict, metrics["connections"], measured.capture["hidden"]) == ("degraded", 0, 2)


UNSUPPORTED = "unsupported link type 127 (IEEE 802.11 with radiotap header): use --decoder pyshark"


def test_an_unsupported_link_type_is_refused_with_the_decoder_that_reads_it(tmp_path: Path) -> None:
    path = written(tmp_path / "air.pcap", 127, [radiotap(packet) for packet in PACKETS])
    with pytest.raises(analysis.UnsupportedCapture) as refused:
        analysis.analyse(path)
    assert str(refused.value) == f"{path}: {UNSUPPORTED}"
    command = [sys.executable, "-m", "analysis", "stats", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (2, f"analysis: {path}: {UNSUPPORTED}\n")
    measured = analysis.analyse(path, decoder="pyshark")
    assert (measured.metrics["connections"], measured.metrics["payload_bytes"]) == (2, 2 * 700 + 30 + 90)


@pytest.mark.parametrize("at", [0, 35_000])
def test_an_unsupported_packet_among_others_is_refused_wherever_it_comes(tmp_path: Path, at: int) -> None:
    blocks = [files.enhanced(Frame.whole(10**15, ethernet(PACKETS[3])))] * 40_000
    blocks[at] = files.enhanced(Frame.whole(10**15, radiotap(PACKETS[3])), number=1)
    path = tmp_path / "links.pcapng"
    path.write_bytes(files.section() + files.interface() + files.interface(link=127) + b"".join(blocks))
    with pytest.raises(analysis.UnsupportedCapture, match="link type 127"):
        analysis.analyse(path)


def test_an_interface_without_packets_may_have_any_link_type(tmp_path: Path) -> None:
    path = tmp_path / "links.pcapng"
    packet = files.enhanced(Frame.whole(10**15, ethernet(PACKETS[3])))
    path.write_bytes(files.section() + files.interface() + files.interface(link=189) + packet)
    assert analysis.analyse(path).metrics["payload_bytes"] == 700
