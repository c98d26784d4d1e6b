"""Sizes of buffer and tables, and compression, do not change the result."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest

import analysis
from analysis.capture.stream import BUFFER_BYTES, CaptureReader
from tests.analysis import capture_files as files
from tests.analysis.capture_files import Frame
from tests.analysis.frames import ethernet, ipv4, tcp

START_NS = 1_700_000_000 * 10**9


def frames(contents: list[bytes]) -> list[Frame]:
    return [Frame.whole(START_NS + 1000 * number, content) for number, content in enumerate(contents)]


def talk(number: int, size: int = 400) -> list[bytes]:
    """A new connection with handshakes of both ends, and a packet of it."""
    one = ("10.0.0.1", "10.0.0.2", 20_000 + number % 40_000, 5000 + number // 40_000)
    handshakes = [struct.pack("<II", 0x5A5A0001, rank) + b"OPAL-TCP-BTL".ljust(16, b"\0") for rank in (0, 1)]
    source, destination, sport, dport = one
    return [
        ethernet(ipv4(tcp(sport, dport, seq=1, payload=handshakes[0]), source=source, destination=destination)),
        ethernet(ipv4(tcp(dport, sport, seq=1, ack=25, payload=handshakes[1]), source=destination, destination=source)),
        ethernet(ipv4(tcp(sport, dport, seq=25, ack=25, payload=bytes(size)), source=source, destination=destination)),
    ]


MANY = [frame for number in range(3000) for frame in talk(number)]
LONG = [bytes(size) for size in (60, 131_056, 131_072, 131_073, 200_000, 60, 262_128, 60)]
KINDS = {
    "many connections and handshakes": files.pcap(frames(MANY)),
    "of a big-endian machine, in microseconds": files.pcap(frames(MANY[:5000]), nanoseconds=False, order=">"),
    "long records": files.pcap(frames([*MANY[:900], *LONG, *MANY[900:1800]])),
    "a whole number of buffers": files.pcap(frames([bytes(1008)] * (2 * BUFFER_BYTES // 1024)))[: 2 * BUFFER_BYTES],
    "cut off": files.pcap(frames(MANY))[:-100],
    "damaged behind some packets": files.pcap(frames(MANY[:8000])) + b"\xff" * 500,
    "no more than its header": files.pcap([]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_compressed_file_gives_the_same(tmp_path: Path, kind: str) -> None:
    (tmp_path / "plain").write_bytes(KINDS[kind])
    (tmp_path / "packed").write_bytes(gzip.compress(KINDS[kind], 1))
    plain, packed = (analysis.read_capture(tmp_path / name) for name in ("plain", "packed"))
    assert len(plain) > 0 or not KINDS[kind][24:]
    for name in (*plain.columns(), "flow_endpoints", "flow_protocol", "btl_handshakes"):
        np.testing.assert_array_equal(getattr(plain, name), getattr(packed, name), err_msg=name)
    assert plain.hosts == packed.hosts
    of_file = {"compression", "file_bytes"}
    facts = [{key: fact for key, fact in table.source.items() if key not in of_file} for table in (plain, packed)]
    assert facts[0] == facts[1]


@pytest.mark.parametrize("buffer_bytes", [64, 1000, 131_073, BUFFER_BYTES])
@pytest.mark.parametrize("most_rows", [8, 1000, 1 << 15])
def test_neither_size_of_buffer_nor_table_matters(tmp_path: Path, buffer_bytes: int, most_rows: int) -> None:
    path = tmp_path / "plain"
    path.write_bytes(files.pcap(frames(MANY[:3000])))
    whole = analysis.read_capture(path)
    with CaptureReader(path, buffer_bytes=buffer_bytes, most_rows=most_rows) as reader:
        tables = list(reader.tables())
        reader.finish()
        joined = analysis.PacketTable.joined(tables, reader.facts())
    for name in (*whole.columns(), "btl_handshakes"):
        np.testing.assert_array_equal(getattr(joined, name), getattr(whole, name), err_msg=name)
    assert joined.source["packets"] == len(whole) == 3000
    assert not joined.source["truncated_tail"]
