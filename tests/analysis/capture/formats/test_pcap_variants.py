"""Relatives of the two formats that capinfos reads: other headers of files and records, blocks whose lengths leave out their padding."""

from __future__ import annotations

import gzip
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from os import mkfifo
from pathlib import Path

import pytest
import zstandard

import analysis
from analysis.capture.stream import CaptureReader
from tests.analysis import capture_files as files
from tests.analysis.capture_files import Frame, Order
from tests.analysis.frames import ethernet, ipv4, tcp
from tests.analysis.oracles.tools import capinfos

START_NS = 1_700_000_000_123_456_000
FRAMES = [
    Frame.whole(START_NS + 1000 * k * k, ethernet(ipv4(tcp(seq=k, payload=b"x" * (41 * k)), identity=k)), 128)
    for k in range(40)
]
ORDERS: tuple[Order, ...] = ("<", ">")


@dataclass(frozen=True)
class Kind:
    """How one kind of savefile is written."""

    magic: int = 0xA1B2C3D4
    version: tuple[int, int] = (2, 4)
    link: int = 1
    record_bytes: int = 16
    header: bytes = b""
    before: bytes = b""
    nanoseconds: bool = False

    def written(self, frames: list[Frame], order: Order) -> bytes:
        parts = [struct.pack(order + "IHHiIII", self.magic, *self.version, 0, 0, 262_144, self.link), self.header]
        for frame in frames:
            seconds, ns = divmod(frame.time_ns or 0, 10**9)
            lengths = (len(frame.data) + len(self.before), frame.orig_len + len(self.before))
            if self.version == (2, 2):
                lengths = lengths[::-1]
            parts.append(struct.pack(order + "IIII", seconds, ns if self.nanoseconds else ns // 1000, *lengths))
            parts += [
                b"\x02\x00\x00\x00\x08\x00\x04\x00\xff\xff\xff\xff"[: self.record_bytes - 16],
                self.before,
                frame.data,
            ]
        return b"".join(parts)


def framed(address: Callable[[bytes], bytes]) -> list[Frame]:
    return [Frame.whole(f.time_ns or 0, address(f.data[14:]), 300) for f in FRAMES]


def token_ring(packet: bytes) -> bytes:
    return b"\x10\x40" + bytes(12) + b"\xaa\xaa\x03\0\0\0\x08\0" + packet


def fddi(packet: bytes) -> bytes:
    return b"\x50" + bytes(12) + b"\xaa\xaa\x03\0\0\0\x08\0" + packet


KINDS = {
    "kuznetzov": (Kind(0xA1B2CD34, record_bytes=24), FRAMES),
    "suse 6.3": (Kind(0xA1B2CD34, record_bytes=28), FRAMES),
    "red hat 6.1": (Kind(record_bytes=24), FRAMES),
    "nokia": (Kind(record_bytes=20), FRAMES),
    "ixia software": (Kind(0x1C0001AB, header=bytes(4)), FRAMES),
    "ixia hardware": (Kind(0x1C0001AC, header=bytes(4), nanoseconds=True), FRAMES),
    "aix ethernet": (Kind(version=(2, 2), link=6, nanoseconds=True), FRAMES),
    "aix token ring": (Kind(version=(2, 2), link=9, nanoseconds=True), framed(token_ring)),
    "aix fddi": (Kind(version=(2, 2), link=15, nanoseconds=True, before=b"pad"), framed(fddi)),
    "aix loopback": (Kind(version=(2, 2), link=24, nanoseconds=True), framed(lambda packet: b"\x02\0\0\0" + packet)),
}


def same_packets(table: analysis.PacketTable, frames: list[Frame]) -> None:
    assert table.time_ns.tolist() == [f.time_ns for f in frames]
    assert table.orig_len.tolist() == [f.orig_len for f in frames]
    assert table.cap_len.tolist() == [len(f.data) for f in frames]
    assert table.seq.tolist() == list(range(len(frames)))


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", KINDS)
def test_every_kind_gives_its_packets(tmp_path: Path, name: str, order: Order, pack: Callable[[bytes], bytes]) -> None:
    kind, frames = KINDS[name]
    path = tmp_path / "file"
    path.write_bytes(pack(kind.written(frames, order)))
    table = analysis.read_capture(path)
    same_packets(table, frames)
    assert not table.source["truncated_tail"]
    assert not table.source["damaged"]
    assert table.source["time_resolution"] == ("ns" if kind.nanoseconds else "us")


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", KINDS)
def test_capinfos_counts_the_same_of_every_kind(tmp_path: Path, name: str, order: Order) -> None:
    kind, frames = KINDS[name]
    path = tmp_path / "file"
    path.write_bytes(kind.written(frames, order))
    facts, measured = capinfos(path), analysis.analyse(path)
    assert measured.metrics["packets"] == int(facts["Number of packets"]) == len(frames)
    assert measured.metrics["wire_bytes"] == int(facts["Data size (bytes)"])
    assert analysis.analyse(path, decoder="pyshark").metrics["payload_bytes"] == measured.metrics["payload_bytes"] > 0


@pytest.mark.parametrize("name", KINDS)
def test_what_is_cut_off_is_told_of_every_kind(tmp_path: Path, name: str) -> None:
    kind, frames = KINDS[name]
    whole, before = kind.written(frames, "<"), kind.written(frames[:-1], "<")
    path = tmp_path / "file"
    for length in (len(before) + 1, len(before) + kind.record_bytes, len(whole) - 1):
        path.write_bytes(whole[:length])
        measured = analysis.analyse(path)
        assert measured.metrics["packets"] == len(frames) - 1
        assert measured.metrics["truncated_tail"] == 1
        assert measured.trust.verdict != "good"


def test_a_header_that_is_cut_off_is_told(tmp_path: Path) -> None:
    path = tmp_path / "file"
    for length in (24, 27):
        path.write_bytes(KINDS["ixia software"][0].written(FRAMES, "<")[:length])
        assert analysis.analyse(path).metrics["truncated_tail"] == 1


@pytest.mark.parametrize("name", ["kuznetzov", "ixia hardware", "aix fddi"])
def test_a_pipe_and_standard_input_give_what_the_file_gives(tmp_path: Path, name: str) -> None:
    kind, frames = KINDS[name]
    data, pipe = kind.written(frames, ">"), tmp_path / "pipe"
    mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(data), daemon=True)
    writer.start()
    assert analysis.analyse(pipe).metrics["packets"] == len(frames)
    writer.join(10)
    argv = [sys.executable, "-m", "analysis", "stats", "-", "--json"]
    done = subprocess.run(argv, input=data, capture_output=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert f'"packets":{len(frames)},'.encode() in done.stdout


@pytest.mark.parametrize("name", ["kuznetzov", "ixia software", "aix ethernet"])
def test_it_is_followed_while_it_grows(tmp_path: Path, name: str) -> None:
    kind, frames = KINDS[name]
    path, data = tmp_path / "growing", kind.written(frames, "<")
    path.write_bytes(b"")
    counted = 0
    with CaptureReader(path) as reader, path.open("ab", buffering=0) as file:
        for at in range(0, len(data), 13):
            file.write(data[at : at + 13])
            counted += sum(len(table) for table in reader.tables())
    assert counted == len(frames)


@pytest.mark.parametrize("order", ORDERS)
def test_the_usual_kind_stays_the_usual_kind(tmp_path: Path, order: Order) -> None:
    """Frames longer than was announced, or a few damaged bytes, make no other kind of it."""
    longer = files.pcap(FRAMES, order=order, nanoseconds=False, snap_length=60)
    path = tmp_path / "file"
    path.write_bytes(longer)
    same_packets(analysis.read_capture(path), FRAMES)
    damaged = bytearray(files.pcap(FRAMES, order=order, nanoseconds=False))
    damaged[28:32] = b"\xff\xff\xff\xff"  # the fraction of the first second
    path.write_bytes(damaged)
    assert analysis.read_capture(path).orig_len.tolist() == [f.orig_len for f in FRAMES]


def lengths_without_padding(block: bytes, padding: int, order: Order) -> bytes:
    """The same block, with both of its lengths shorter by what fills up its last four bytes."""
    claimed = struct.pack(order + "I", len(block) - padding)
    return block[:4] + claimed + block[8:-4] + claimed


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("write", [files.obsolete, files.enhanced])
def test_blocks_whose_length_leaves_out_their_padding_are_read(
    tmp_path: Path, write: Callable[[Frame, Order], bytes], order: Order
) -> None:
    padded = [Frame(f.time_ns, f.data[: 64 + k % 4], f.orig_len) for k, f in enumerate(FRAMES)]
    blocks = b"".join(lengths_without_padding(write(f, order), -len(f.data) % 4, order) for f in padded)
    unknown = lengths_without_padding(files.block(0x0BAD, b"seven..", order), 1, order)
    path = tmp_path / "file"
    path.write_bytes(files.section(order) + files.interface(order) + unknown + blocks)
    table = analysis.read_capture(path)
    same_packets(table, padded)
    assert not table.source["truncated_tail"]
    assert capinfos(path)["Number of packets"] == str(len(padded))

    path.write_bytes(files.section(order) + files.interface(order) + blocks[:-1])
    assert analysis.analyse(path).metrics["truncated_tail"] == 1
    broken = bytearray(blocks)
    broken[4 if order == "<" else 7] += 1  # one of the two lengths alone
    path.write_bytes(files.section(order) + files.interface(order) + bytes(broken))
    assert analysis.read_capture(path).source["damaged"]


@pytest.mark.parametrize("order", ORDERS)
def test_a_long_block_whose_length_leaves_out_its_padding_is_passed_over(tmp_path: Path, order: Order) -> None:
    long = lengths_without_padding(files.block(0x0BAD, bytes((17 << 20) + 1), order), 3, order)
    path = tmp_path / "file"
    path.write_bytes(files.section(order) + files.interface(order) + long + files.enhanced(FRAMES[0], order))
    assert len(analysis.read_capture(path)) == 1
