"""The packet inspector: fields of packets by number or display filter."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

import analysis
from analysis.capture import tshark
from analysis.capture.dissect import check_filter, dissect
from analysis.capture.listing import list_packets
from analysis.capture.tshark import running
from tests.analysis.capture_files import Frame, block, interface, pcapng, section
from tests.analysis.frames import ethernet, ipv4, tcp, udp
from tests.analysis.oracles.tools import tshark_fields


def fields(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for child in node["fields"]:
        yield child
        yield from fields(child)


def readers() -> set[int]:
    """Return the tshark processes below this one."""
    results = set()
    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if child.name() == "tshark":
                results.add(child.pid)
    return results


def test_a_frame_range_gives_the_fields_that_tshark_prints(mpi_capture: Path) -> None:
    packets = dissect(mpi_capture, frames=(4, 8))
    rows = tshark_fields(
        mpi_capture, "frame.number", "frame.time_epoch", "frame.len", "tcp.seq_raw", "tcp.window_size_value"
    )
    assert [packet["number"] for packet in packets] == [4, 5, 6, 7, 8]
    for packet, row in zip(packets, rows[3:8], strict=True):
        assert (packet["time_ns"], packet["length"]) == (int(row[1].replace(".", "")), int(row[2]))
        (tcp,) = [layer for layer in packet["layers"] if layer["name"] == "tcp"]
        values = {field["name"]: field["value"] for field in fields(tcp)}
        assert (values["tcp.seq_raw"], values["tcp.window_size_value"]) == (row[3], row[4])
        assert tcp["label"].startswith("Transmission Control Protocol, Src Port: ")


def test_the_tree_nests_flags_below_their_field_with_place_and_size(mpi_capture: Path) -> None:
    (packet,) = dissect(mpi_capture, display_filter="tcp.flags.syn == 1 && tcp.flags.ack == 0", limit=1)
    (tcp,) = [layer for layer in packet["layers"] if layer["name"] == "tcp"]
    (flags,) = [field for field in tcp["fields"] if field["name"] == "tcp.flags"]
    syn = next(field for field in flags["fields"] if field["name"] == "tcp.flags.syn")
    assert flags["label"] == "Flags: 0x002 (SYN)"
    assert syn["label"] == ".... .... ..1. = Syn: Set"
    assert (flags["position"], flags["size"]) == (tcp["position"] + 12, 2)
    assert packet["protocol"] == "TCP"
    json.dumps(packet, allow_nan=False)


def test_a_list_has_the_packets_of_an_interval_as_tshark_counts_its_seconds(mpi_capture: Path) -> None:
    rows = tshark_fields(mpi_capture, "frame.number", "frame.time_relative", "frame.len", "ip.src", "ip.dst")
    begin_s, end_s = float(rows[3][1]), float(rows[7][1])
    lines = list_packets(mpi_capture, seconds=(begin_s, end_s))
    expected = [row for row in rows if begin_s <= float(row[1]) <= end_s]
    assert [(line.number, line.time_s, line.length) for line in lines] == [
        (int(r[0]), float(r[1]), int(r[2])) for r in expected
    ]
    assert [(line.source, line.destination) for line in lines] == [(row[3], row[4]) for row in expected]
    assert list_packets(mpi_capture, seconds=(begin_s, end_s), display_filter="tcp", limit=1)[0] in lines
    with pytest.raises(ValueError, match="first not above the last"):
        list_packets(mpi_capture, seconds=(2.0, 1.0))


def test_list_packets_covers_the_selected_frames(mpi_capture: Path) -> None:
    everything = list_packets(mpi_capture, limit=10**6)
    assert [line.number for line in everything] == list(range(1, len(everything) + 1))
    assert list_packets(mpi_capture, frames=(5, 10**9), limit=3) == everything[4:7]
    assert list_packets(mpi_capture, frames=(2, 3)) == everything[1:3]


def test_list_packets_names_kind_and_connection(tmp_path: Path) -> None:
    data = tcp(seq=2, flags=0x18, payload=b"x" * 100)
    back = {"source": "10.0.0.2", "destination": "10.0.0.1"}
    packets = [
        ipv4(tcp(seq=1, flags=0x02)),
        ipv4(tcp(20_000, 40_000, seq=1, ack=2, flags=0x12), **back),
        ipv4(data),
        ipv4(tcp(20_000, 40_000, seq=2, ack=102), **back),
        ipv4(data),
        ipv4(tcp(seq=102, ack=2, flags=0x11)),
        ipv4(tcp(50_000, seq=1, flags=0x04)),
        ipv4(udp(4791, 4791, b"x"), protocol=17),
    ]
    frames = [ethernet(packet) for packet in packets]
    frames.append(ethernet(b"\0\1\x08\0\6\4\0\1" + bytes(20), kind=0x0806))
    file = tmp_path / "packets.pcapng"
    file.write_bytes(pcapng([Frame.whole(10**18 + at * 10**6, frame) for at, frame in enumerate(frames)]))
    lines = list_packets(file)
    assert [line.kind for line in lines] == [
        *("handshake", "handshake", "data", "ack", "problem", "handshake", "handshake", "datagram", "other")
    ]
    assert [line.connection for line in lines] == [*["tcp.stream == 0"] * 6, "tcp.stream == 1", "udp.stream == 0", ""]
    assert list_packets(file, display_filter=lines[0].connection) == lines[:6]


def test_a_filter_and_a_range_hold_together_and_the_limit_ends_the_search(mpi_capture: Path) -> None:
    before = readers()
    packets = dissect(mpi_capture, frames=(1, 300), display_filter="tcp.len > 0 || tcp.len == 0", limit=3)
    assert [packet["number"] for packet in packets] == [1, 2, 3]
    assert readers() <= before


def test_a_reader_with_enough_does_not_wait_for_a_slow_search(mpi_capture: Path) -> None:
    before = readers()
    with running(mpi_capture, ["-T", "pdml"], timeout_s=30) as run:
        assert run.stdout.readline().startswith(b"<?xml")
        run.enough = True
    assert run.stdout.closed
    assert readers() <= before


@pytest.mark.parametrize(
    "expression",
    [
        "no.such.field",
        "tcp and",
        "tcp) or (udp",
        "tcp.port == ",
        'frame matches "("',
        "$(touch x)",
        "-h",
        "tcp\n",
        "x" * 2001,
    ],
)
def test_a_filter_that_tshark_refuses_is_a_filter_error_in_its_words(mpi_capture: Path, expression: str) -> None:
    with pytest.raises(analysis.FilterError) as caught:
        dissect(mpi_capture, display_filter=expression)
    assert 5 < len(str(caught.value)) < 300
    assert "tshark:" not in str(caught.value)


def test_shell_characters_in_a_filter_are_only_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check_filter('frame contains "; touch x; $(touch x) `touch x` & | > x"')
    assert list(tmp_path.iterdir()) == []


def test_frame_numbers_and_limits_are_checked(mpi_capture: Path) -> None:
    for frames in ((0, 5), (5, 4), (-3, -1)):
        with pytest.raises(ValueError, match="frames"):
            dissect(mpi_capture, frames=frames)
    with pytest.raises(ValueError, match="limit"):
        dissect(mpi_capture, limit=0)


def test_tshark_is_ended_when_time_is_up(mpi_capture: Path) -> None:
    before = readers()
    with pytest.raises(analysis.DecoderError, match="longer than"):
        dissect(mpi_capture, limit=10**9, timeout_s=0.01)
    assert readers() <= before


def test_a_file_that_is_no_capture_is_named_as_such(tmp_path: Path) -> None:
    text = tmp_path / "-r notes.txt"
    text.write_text("no packets here")
    with pytest.raises(analysis.UnreadableCapture, match="notes"):
        dissect(text)
    with pytest.raises(analysis.UnreadableCapture, match="no such file"):
        dissect(tmp_path / "absent.pcap")


def test_a_capture_cut_off_in_a_record_gives_what_is_before_it(mpi_pcap: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(mpi_pcap.read_bytes()[:1000])
    packets = dissect(cut, limit=1000)
    assert [packet["number"] for packet in packets] == list(range(1, len(packets) + 1))
    assert 2 <= len(packets) <= 12


def test_a_record_that_is_no_packet_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "events.pcapng"
    path.write_bytes(section() + interface() + block(0x204, b"\xff" * 40, "<"))
    with pytest.raises(analysis.DecoderError, match="not a packet"):
        dissect(path, frames=(1, 1))


def test_the_readers_own_wireshark_settings_change_nothing(
    mpi_capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".config" / "wireshark").mkdir(parents=True)
    (tmp_path / ".config" / "wireshark" / "disabled_protos").write_text("tcp\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    (packet,) = dissect(mpi_capture, frames=(1, 1))
    assert "tcp" in [layer["name"] for layer in packet["layers"]]


def test_a_reader_with_a_time_limit_has_a_limit_of_memory(mpi_capture: Path) -> None:
    arguments = ["-T", "pdml", "-l"]
    with running(mpi_capture, arguments, 20.0) as run:
        run.stdout.read(1)
        (reader,) = readers()
        assert psutil.Process(reader).rlimit(psutil.RLIMIT_AS) == (tshark.MEMORY_BYTES, tshark.MEMORY_BYTES)
        run.enough = True
