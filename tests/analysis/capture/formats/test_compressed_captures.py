"""Compressed captures: equal packets, and no damaged file passes as good."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import struct
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

import analysis
from analysis.capture import compressed
from analysis.capture.source import open_source
from tests.analysis import capture_files as files
from tests.analysis.capture_files import Frame
from tests.analysis.frames import ethernet, ipv4, tcp

NOISE = random.Random(1)
FRAMES = [
    Frame.whole(10**15 + k * 1000, ethernet(ipv4(tcp(seq=1 + 300 * k, payload=NOISE.randbytes(300)), identity=k)))
    for k in range(2000)
]
PLAIN = files.pcapng(FRAMES)


def zstd_like_old_recordings(data: bytes) -> bytes:
    """Neither size nor checksum: what recordings were before they got both."""
    return b"".join(zstandard.ZstdCompressor(level=1).read_to_iter(io.BytesIO(data)))


def zstd_with_both(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=1, write_checksum=True).compress(data)


COMPRESSORS = {
    "gzip": gzip.compress, "zstd": zstd_with_both, "xz": lzma.compress, "bzip2": bz2.compress,
}  # fmt: skip


def analysed(tmp_path: Path, data: bytes) -> analysis.CaptureAnalysis:
    path = tmp_path / "capture"
    path.write_bytes(data)
    return analysis.analyse(path)


def doubts(tmp_path: Path, data: bytes) -> str:
    """Return why trust is lower, or a file is refused."""
    try:
        trust = analysed(tmp_path, data).trust
    except analysis.UnreadableCapture as refused:
        return str(refused)
    assert (trust.verdict == "good") == (not trust.reasons)
    return " ".join(trust.reasons)


@pytest.mark.parametrize("kind", COMPRESSORS)
def test_it_reads_every_kind_of_compression_also_in_two_streams(tmp_path: Path, kind: str) -> None:
    compress = COMPRESSORS[kind]
    for data in (compress(PLAIN), compress(PLAIN[:70_000]) + compress(PLAIN[70_000:])):
        measured = analysed(tmp_path, data)
        assert measured.capture["compression"] == kind
        assert measured.metrics["packets"] == len(FRAMES)
        assert (measured.trust.verdict, measured.trust.reasons, measured.trust.remarks) == ("good", (), ())


@pytest.mark.parametrize("compress", [*COMPRESSORS.values(), zstd_like_old_recordings])
def test_no_cut_passes_as_good(tmp_path: Path, compress: Callable[[bytes], bytes]) -> None:
    whole, chance = compress(PLAIN), random.Random(2)
    for length in (len(whole) - 1, len(whole) - 5, *(chance.randrange(200_000, len(whole)) for _ in range(6))):
        assert "end" in doubts(tmp_path, whole[:length]), length


@pytest.mark.parametrize("kind", COMPRESSORS)
def test_no_flipped_bit_passes_as_good(tmp_path: Path, kind: str) -> None:
    whole, chance = COMPRESSORS[kind](PLAIN), random.Random(3)
    for _ in range(8):
        damaged = bytearray(whole)
        damaged[chance.randrange(20, len(whole) - 20)] ^= 1 << chance.randrange(8)
        assert doubts(tmp_path, bytes(damaged))


def test_a_stream_without_a_checksum_is_read_and_its_end_called_not_verified(tmp_path: Path) -> None:
    trust = analysed(tmp_path, zstd_like_old_recordings(PLAIN)).trust
    assert (trust.verdict, trust.reasons) == ("good", ())
    assert "end not verified" in trust.remarks[0]
    assert trust.to_dict()["remarks"] == list(trust.remarks)


def test_a_damaged_stream_gives_the_packets_that_zstd_itself_gives(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    damaged = bytearray(zstd_with_both(PLAIN))
    damaged[-300_000] ^= 0x10
    path.write_bytes(damaged)
    given = subprocess.run(["zstd", "-dcq"], input=bytes(damaged), capture_output=True, check=False).stdout
    assert len(given) > 100_000
    (tmp_path / "given").write_bytes(given)
    expected = analysis.analyse(tmp_path / "given").metrics["packets"]
    assert analysis.analyse(path).metrics["packets"] >= expected > 0


@pytest.mark.parametrize("kind", COMPRESSORS)
@pytest.mark.parametrize(("always_bytes", "is_stopped"), [(1_000_000, True), (20_000_000, False)])
def test_a_stream_far_longer_than_its_file_ends_with_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, always_bytes: int, is_stopped: bool
) -> None:
    monkeypatch.setattr(compressed, "ALWAYS_BYTES", always_bytes)
    path = tmp_path / "zeros"
    path.write_bytes(COMPRESSORS[kind](bytes(10_000_000)))
    source, target = open_source(path), memoryview(bytearray(1 << 16))
    given = sum(iter(lambda: source.readinto(target), 0))
    source.close()
    assert (given < 1_200_000) == is_stopped
    assert (source.problem is not None and "not read further" in source.problem) == is_stopped


def test_no_capture_is_read_on_beyond_many_times_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compressed, "ALWAYS_BYTES", 100_000)
    monkeypatch.setattr(compressed, "MOST_TIMES", 1)
    result = analysed(tmp_path, zstd_with_both(files.pcap(200 * FRAMES[:100])))
    assert result.trust.verdict == "degraded"
    assert any("as long as its file" in reason for reason in result.trust.reasons)
    assert 0 < result.metrics["packets"] < 20_000


@pytest.mark.parametrize("at_once", [1, 7, 1000, 1 << 20])
@pytest.mark.parametrize("kind", COMPRESSORS)
def test_content_comes_in_order_in_pieces_of_any_size(tmp_path: Path, kind: str, at_once: int) -> None:
    content = NOISE.randbytes(3000) + bytes(200_000) if at_once > 7 else b"short " * 100
    path = tmp_path / "content"
    path.write_bytes(COMPRESSORS[kind](content) + COMPRESSORS[kind](b"behind"))
    source, target, read = open_source(path), memoryview(bytearray(at_once)), b""
    while count := source.readinto(target):
        read += target[:count]
    source.close()
    assert (read, source.problem) == (content + b"behind", None)


def test_frames_of_zstd_that_hold_no_content_are_skipped(tmp_path: Path) -> None:
    skipped = struct.pack("<II", 0x184D2A50, 5) + b"12345"
    measured = analysed(tmp_path, zstd_with_both(PLAIN[:70_000]) + skipped + zstd_with_both(PLAIN[70_000:]) + skipped)
    assert (measured.metrics["packets"], measured.trust.verdict, measured.trust.remarks) == (len(FRAMES), "good", ())


@pytest.mark.parametrize("kind", COMPRESSORS)
def test_damage_in_a_second_stream_is_reported(tmp_path: Path, kind: str) -> None:
    for second_bytes in (3000, 300_000):  # less than a reader's buffer, and more
        first, second = COMPRESSORS[kind](PLAIN[:-second_bytes]), COMPRESSORS[kind](PLAIN[-second_bytes:])
        for at in (0, len(second) // 2):
            damaged = bytearray(first + second)
            damaged[len(first) + at] ^= 0xFF
            assert f"the {kind} stream is damaged" in doubts(tmp_path, bytes(damaged)), (second_bytes, at)


@pytest.mark.parametrize("kind", COMPRESSORS)
@pytest.mark.parametrize("behind", [b"x", b"no stream", b"no stream" * 2000])
def test_bytes_behind_the_last_stream_are_reported(tmp_path: Path, kind: str, behind: bytes) -> None:
    assert f"the {kind} stream" in doubts(tmp_path, COMPRESSORS[kind](PLAIN) + behind)


@pytest.mark.parametrize("zeros", [4, 8192, 100_000])
def test_padding_of_xz_streams_is_skipped(tmp_path: Path, zeros: int) -> None:
    first, second = lzma.compress(PLAIN[:70_000]), lzma.compress(PLAIN[70_000:])
    measured = analysed(tmp_path, first + bytes(zeros) + second + bytes(zeros))
    assert (measured.metrics["packets"], measured.trust.verdict) == (len(FRAMES), "good")
    assert "multiple of 4" in doubts(tmp_path, first + second + bytes(zeros + 1))


def test_an_xz_stream_without_a_checksum_is_reported(tmp_path: Path) -> None:
    first, second = lzma.compress(PLAIN[:70_000], check=lzma.CHECK_NONE), lzma.compress(PLAIN[70_000:])
    trust = analysed(tmp_path, first + second).trust
    assert trust.verdict == "good"
    assert "the xz stream has no checksum, so its content is not verified" in trust.remarks[0]


def test_an_xz_stream_that_needs_too_much_memory_is_reported(tmp_path: Path) -> None:
    data = bytearray(lzma.compress(PLAIN))
    length = data[12] * 4  # of the block's header, without its checksum
    data[16] = 37  # a dictionary of 1.5 GiB
    data[12 + length : 16 + length] = struct.pack("<I", zlib.crc32(data[12 : 12 + length]))
    assert "Memory usage limit exceeded" in doubts(tmp_path, bytes(data))


def test_lz4_files_are_refused_with_the_command_that_unpacks_them(tmp_path: Path) -> None:
    with pytest.raises(analysis.UnreadableCapture, match="unpack it with `lz4 -d` first"):
        analysed(tmp_path, b"\x04\x22\x4d\x18" + bytes(100))
