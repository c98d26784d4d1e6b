"""Every variant of the two file formats gives the same packets."""

from __future__ import annotations

import gzip
import random
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import zstandard

import analysis
from analysis.numbers import significant
from analysis.packets import NO_TIME
from tests.analysis import capture_files as files
from tests.analysis.capture_files import Frame
from tests.analysis.frames import ethernet, ipv4, tcp

START_NS = 1_700_000_000_123_456_789
FRAMES = [
    Frame.whole(START_NS + 1000 * k * k, ethernet(ipv4(tcp(seq=k, payload=b"x" * (37 * k)), identity=k)), 128)
    for k in range(200)
]


def read(tmp_path: Path, data: bytes) -> analysis.PacketTable:
    (tmp_path / "file").write_bytes(data)
    return analysis.read_capture(tmp_path / "file")


def same_packets(table: analysis.PacketTable, frames: list[Frame]) -> None:
    assert len(table) == len(frames)
    assert table.time_ns.tolist() == [int(NO_TIME) if f.time_ns is None else f.time_ns for f in frames]
    assert table.orig_len.tolist() == [f.orig_len for f in frames]
    assert table.cap_len.tolist() == [len(f.data) for f in frames]


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(lambda: files.pcap(FRAMES), id="pcap"),
        pytest.param(lambda: files.pcap(FRAMES, order=">"), id="pcap-big-endian"),
        pytest.param(lambda: files.pcapng(FRAMES), id="pcapng"),
        pytest.param(lambda: files.pcapng(FRAMES, order=">"), id="pcapng-big-endian"),
        pytest.param(lambda: files.pcap(FRAMES, link=1 | 0x14000000), id="flags-in-link-word"),
        pytest.param(lambda: gzip.compress(files.pcap(FRAMES)), id="gzip"),
        pytest.param(
            lambda: gzip.compress(files.pcap(FRAMES)[:1000]) + gzip.compress(files.pcap(FRAMES)[1000:]),
            id="gzip-members",
        ),
        pytest.param(lambda: zstandard.compress(files.pcapng(FRAMES)), id="zstd"),
    ],
)
def test_it_reads_the_same_packets_from_every_variant(tmp_path: Path, write: Callable[[], bytes]) -> None:
    table = read(tmp_path, write())
    same_packets(table, FRAMES)
    assert table.seq.tolist() == list(range(200))
    assert table.payload.tolist() == [37 * k for k in range(200)]
    assert not table.source["truncated_tail"]
    assert table.source["unread_bytes"] == 0


@pytest.mark.parametrize("order", ["<", ">"])
def test_microsecond_files_hold_microseconds(tmp_path: Path, order: files.Order) -> None:
    table = read(tmp_path, files.pcap(FRAMES, nanoseconds=False, order=order))
    assert table.time_ns.tolist() == [(f.time_ns or 0) // 1000 * 1000 for f in FRAMES]


@pytest.mark.parametrize(
    ("tsresol", "ticks_per_s"),
    [(None, 10**6), (3, 10**3), (6, 10**6), (9, 10**9), (0, 1), (0x8A, 2**10), (0xA0, 2**32), (0xA1, 2**33)],
)
def test_pcapng_time_resolutions_are_exact(tmp_path: Path, tsresol: int | None, ticks_per_s: int) -> None:
    ticks = [1_700_000_000 * ticks_per_s + k * max(ticks_per_s // 7, 1) for k in range(5)]
    blocks = b"".join(files.enhanced(FRAMES[k], ticks=tick) for k, tick in enumerate(ticks))
    table = read(tmp_path, files.section() + files.interface(tsresol=tsresol) + blocks)
    assert table.time_ns.tolist() == [tick * 10**9 // ticks_per_s for tick in ticks]


def test_picoseconds_are_rounded_towards_the_past(tmp_path: Path) -> None:
    ticks = [16_000_000 * 10**12 + k * 999 for k in range(4)]  # 64 bits of picoseconds last until July 1970
    blocks = b"".join(files.enhanced(FRAMES[k], ticks=tick) for k, tick in enumerate(ticks))
    table = read(tmp_path, files.section() + files.interface(tsresol=12) + blocks)
    assert table.time_ns.tolist() == [tick // 1000 for tick in ticks]


def test_the_time_offset_of_an_interface_is_added(tmp_path: Path) -> None:
    data = files.section() + files.interface(tsoffset_s=-3600) + files.enhanced(FRAMES[0])
    assert read(tmp_path, data).time_ns.tolist() == [START_NS - 3600 * 10**9]


def test_sections_and_interfaces_keep_their_own_byte_order_and_clock(tmp_path: Path) -> None:
    data = (
        files.section("<") + files.interface("<", tsresol=9) + files.interface("<", tsresol=6, link=101)
        + files.enhanced(FRAMES[0], "<")
        + files.enhanced(Frame(None, FRAMES[1].data[14:], FRAMES[1].orig_len - 14), "<", number=1, ticks=5)
        + files.section(">") + files.interface(">", tsresol=3) + files.enhanced(FRAMES[2], ">", ticks=7)
    )  # fmt: skip
    table = read(tmp_path, data)
    assert table.time_ns.tolist() == [START_NS, 5000, 7_000_000]
    assert table.seq.tolist() == [0, 1, 2]
    assert table.source["sections"] == 2
    assert table.source["link_types"] == [1, 101]


@pytest.mark.parametrize("order", ["<", ">"])
def test_obsolete_packet_blocks_are_read(tmp_path: Path, order: files.Order) -> None:
    two = files.interface(order, link=101) + files.interface(order)
    data = files.section(order) + two + files.obsolete(FRAMES[3], order, number=1)
    table = read(tmp_path, data)
    same_packets(table, FRAMES[3:4])
    assert table.seq.tolist() == [3]


def test_simple_packet_blocks_have_no_time_stamp(tmp_path: Path) -> None:
    data = files.section() + files.interface(snap_length=100)
    whole = ethernet(ipv4(tcp(seq=9, payload=b"y" * 300)))
    data += files.simple(Frame(None, whole[:100], len(whole)))
    path = tmp_path / "file"
    path.write_bytes(data + files.enhanced(FRAMES[0]))
    table = analysis.read_capture(path)
    same_packets(table, [Frame(None, whole[:100], len(whole)), FRAMES[0]])
    measured = analysis.analyse(path)
    assert measured.metrics["packets"] == 2
    assert "1 of 2 packets carry no time stamp" in measured.not_available["throughput_Bps"]


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_simple_packet_block_with_more_than_its_packet_is_damage(tmp_path: Path, order: files.Order) -> None:
    """One number is wrong: the length of packet or block, or the snap length."""
    good, tail = files.simple(FRAMES[1], order), files.enhanced(FRAMES[2], order)
    claimed = struct.pack(order + "I", 24)
    for begin, block in (
        (files.interface(order), good[:8] + claimed + good[12:]),
        (files.interface(order, snap_length=60), good),
    ):
        table = read(tmp_path, files.section(order) + begin + files.enhanced(FRAMES[0], order) + block + tail)
        same_packets(table, FRAMES[:1])
        assert table.source["damaged"]
    assert not read(tmp_path, files.section(order) + files.interface(order) + good + tail).source["damaged"]


def test_drop_counters_of_the_statistics_block_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "file"
    stats = files.statistics(received=9, dropped=1) + files.statistics(received=250, dropped=50)
    path.write_bytes(files.pcapng(FRAMES) + stats)
    measured = analysis.analyse(path)
    assert measured.metrics["received_by_filter"] == 250
    assert measured.metrics["dropped_by_kernel"] == 50
    assert measured.metrics["tail_lost"] == 50
    assert measured.trust.verdict == "unusable"


def test_unknown_blocks_are_passed_over(tmp_path: Path) -> None:
    custom = files.block(0x0BAD, b"anything", "<")
    data = files.section() + custom + files.interface() + custom
    data += b"".join(files.enhanced(frame) + custom for frame in FRAMES)
    same_packets(read(tmp_path, data), FRAMES)


def test_a_packet_of_an_undeclared_interface_is_counted_without_being_read(tmp_path: Path) -> None:
    data = files.section() + files.interface() + files.enhanced(FRAMES[0], number=7) + files.enhanced(FRAMES[1])
    table = read(tmp_path, data)
    assert table.orig_len.tolist() == [f.orig_len for f in FRAMES[:2]]
    assert table.kind.tolist()[0] == 0
    assert np.isin(table.time_ns[0], [NO_TIME])


@pytest.mark.parametrize("write", [files.pcap, files.pcapng])
def test_everything_before_a_truncated_record_is_used(tmp_path: Path, write: Callable[[list[Frame]], bytes]) -> None:
    whole, all_but_last = write(FRAMES), write(FRAMES[:-1])
    for length in (len(all_but_last) + 1, len(all_but_last) + 20, len(whole) - 1):
        table = read(tmp_path, whole[:length])
        same_packets(table, FRAMES[:-1])
        assert table.source["truncated_tail"]
        assert table.source["unread_bytes"] == length - len(all_but_last)


@pytest.mark.parametrize("compress", [gzip.compress, zstandard.compress])
def test_truncated_compressed_file_gives_its_packets_and_a_note(
    tmp_path: Path, compress: Callable[[bytes], bytes]
) -> None:
    noise = random.Random(1)
    frames = [Frame.whole(START_NS + k, ethernet(ipv4(noise.randbytes(800), protocol=99))) for k in range(1000)]
    packed = compress(files.pcap(frames))
    path = tmp_path / "file"
    path.write_bytes(packed[: len(packed) // 2])
    measured = analysis.analyse(path)
    assert 100 < measured.metrics["packets"] < 600
    assert measured.metrics["truncated_tail"] == 1
    assert measured.trust.verdict != "good"
    assert any("stream ends" in note for note in measured.capture["notes"])


def test_damage_ends_the_reading_and_every_lost_byte_is_counted(tmp_path: Path) -> None:
    first, second = files.pcap(FRAMES[:50]), files.pcap(FRAMES[50:])[24:]
    absurd = (0xFFFFFFFF).to_bytes(4, "little") * 4
    table = read(tmp_path, first + absurd + second)
    same_packets(table, FRAMES[:50])
    assert table.source["damaged"]
    assert table.source["unread_bytes"] == len(absurd) + len(second)


@pytest.mark.parametrize("write", [files.pcap, files.pcapng])
@pytest.mark.parametrize("zeros", [8, 16, 40, 4096, 3_000_000])
def test_zeros_at_the_end_are_no_packets(tmp_path: Path, write: Callable[[list[Frame]], bytes], zeros: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(write(FRAMES) + bytes(zeros))
    measured = analysis.analyse(path)
    assert measured.metrics["packets"] == len(FRAMES)
    assert measured.metrics["unread_bytes"] == zeros
    assert measured.trust.verdict == "degraded"
    assert f"{significant(zeros)} zero bytes at the end" in measured.trust.reasons[0]


def test_zeros_between_packets_are_damage_of_another_kind(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(files.pcap(FRAMES[:50]) + bytes(64) + files.pcap(FRAMES[50:])[24:])
    measured = analysis.analyse(path)
    assert measured.metrics["packets"] == 50
    assert "the file is damaged" in measured.trust.reasons[0]
    assert any("no record, but zeros" in note for note in measured.capture["notes"])


@pytest.mark.parametrize("data", [b"", b"no capture", b"\x0a\x0d\x0d\x0a", files.pcap([])[:10]])
def test_what_is_no_capture_is_refused_with_its_name(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "nonsense"
    path.write_bytes(data)
    if data[:4] == b"\x0a\x0d\x0d\x0a":  # the beginning of a capture: nothing in it yet
        assert analysis.analyse(path).trust.verdict == "unusable"
        return
    with pytest.raises(analysis.UnreadableCapture, match="nonsense"):
        analysis.analyse(path)


def test_a_capture_without_packets_is_unusable_not_an_error(tmp_path: Path) -> None:
    path = tmp_path / "empty.pcap"
    path.write_bytes(files.pcap([]))
    measured = analysis.analyse(path)
    assert measured.metrics["packets"] == 0
    assert measured.trust.verdict == "unusable"
    assert len(analysis.read_capture(path)) == 0
