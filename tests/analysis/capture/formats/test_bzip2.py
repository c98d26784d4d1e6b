"""bzip2 on two threads gives byte for byte what one decompressor of libbz2 gives, also where a file is cut or damaged."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import struct
from pathlib import Path

import pytest
import zstandard

from analysis.capture.bzip2 import Bzip2Source
from analysis.capture.source import open_source

NOISE = random.Random(3)
CONTENT = b"".join(NOISE.randbytes(40) + bytes(NOISE.randrange(60)) for _ in range(9000))
"""Some blocks of 100 kB."""
WHOLE = bz2.compress(CONTENT, 1) + bz2.compress(b"", 1) + bz2.compress(b"behind", 9)


def by_us(data: bytes, at_once: int = 100_000) -> tuple[bytes, str | None]:
    source = Bzip2Source(io.BytesIO(data), len(data))
    buffer, content = memoryview(bytearray(at_once)), b""
    while count := source.readinto(buffer):
        content += buffer[:count]
    source.close()
    return content, source.problem


def by_libbz2(data: bytes) -> tuple[bytes, str | None]:
    """Fed and asked in small pieces, so that all is given that lies before a fault."""
    content, decompressor = b"", bz2.BZ2Decompressor()
    while True:
        some, data = (data[:4096], data[4096:]) if decompressor.needs_input else (b"", data)
        if decompressor.needs_input and not some:
            return content, "the bzip2 stream ends before its end mark"
        try:
            content += decompressor.decompress(some, 4096)
        except OSError:
            return content, "the bzip2 stream is damaged (Invalid data stream)"
        if decompressor.eof:
            data = (decompressor.unused_data + data).lstrip(b"\0")
            if not data:
                return content, None
            decompressor = bz2.BZ2Decompressor()


@pytest.mark.parametrize("at_once", [1, 7, 1000, 10**6])
def test_streams_behind_each_other_are_read(at_once: int) -> None:
    content = CONTENT if at_once > 7 else b"short " * 100
    data = bz2.compress(content, 1) + bytes(5000) + bz2.compress(b"behind")
    assert by_us(data, at_once) == (content + b"behind", None)


def test_a_block_that_says_the_same_again_and_again_is_read() -> None:
    content = bytes(50_000_000) + CONTENT
    assert by_us(bz2.compress(content)) == (content, None)


@pytest.mark.parametrize("seed", range(6))
def test_damage_is_found_and_nothing_before_it_lost(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(12):
        data, place = bytearray(WHOLE), chance.randrange(4, len(WHOLE))
        kind = chance.randrange(3)
        if kind == 0:
            del data[place:]
        elif kind == 1:
            data[place] ^= 1 << chance.randrange(8)
        else:
            del data[place : place + chance.randrange(1, 100)]
        ours, theirs = by_us(bytes(data)), by_libbz2(bytes(data))
        assert ours[1] == theirs[1]
        assert abs(len(ours[0]) - len(theirs[0])) <= 4096  # one of them may have asked for the last piece at once
        shorter = min(len(ours[0]), len(theirs[0]))
        assert ours[0][:shorter] == theirs[0][:shorter]


@pytest.mark.parametrize(
    "data", [bz2.compress(b"abc") + b"garbage", bz2.compress(b"abc") + b"BZ", bz2.compress(b"abc")[:9], b"BZh9"]
)
def test_what_is_no_stream_is_told(data: bytes) -> None:
    assert by_us(data) == by_libbz2(data)


EMPTY_BLOCKS = b"\x28\xb5\x2f\xfd\x00\x58" + bytes(3 * 800_000) + b"\1\0\0"


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(gzip.compress(CONTENT) + gzip.compress(b"") * 700_000, id="gzip"),
        pytest.param(bz2.compress(CONTENT) + bz2.compress(b"") * 20_000, id="bzip2"),
        pytest.param(lzma.compress(CONTENT) + lzma.compress(b"") * 900_000, id="xz"),
        pytest.param(zstandard.compress(CONTENT) + zstandard.compress(b"") * 90_000, id="zstd"),
        pytest.param(zstandard.compress(CONTENT) + struct.pack("<II", 0x184D2A50, 0) * 700_000, id="zstd-skipped"),
        pytest.param(zstandard.compress(CONTENT) + EMPTY_BLOCKS, id="zstd-blocks"),
    ],
)
def test_streams_and_blocks_without_end_are_not_waited_for(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "many"
    path.write_bytes(data)
    source, buffer, content = open_source(path), memoryview(bytearray(1 << 16)), b""
    while count := source.readinto(buffer):
        content += buffer[:count]
    source.close()
    assert content == CONTENT
    assert source.problem is not None
    assert "more streams, frames or blocks than any capture" in source.problem
