"""The bytes of a capture file, plain or compressed (gzip, Zstandard), in bounded pieces."""

from __future__ import annotations

import io
import zlib
from pathlib import Path
from typing import BinaryIO, Final, Protocol

from analysis.errors import UnreadableCapture

GZIP_MAGIC: Final = b"\x1f\x8b"
ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_PIECE: Final = 1 << 18
_LARGEST_WINDOW: Final = 1 << 27
"""Zstandard frames may ask the reader for any amount of memory; 128 MiB is what `zstd` itself accepts unasked."""


class ByteSource(Protocol):
    """Decompressed bytes in order; ``readinto`` returns 0 at the (present) end."""

    compression: str
    size: int
    """Bytes of the file on disk."""
    problem: str | None
    """Why the bytes ended before they should, when they did."""

    def readinto(self, target: memoryview) -> int: ...

    def position(self) -> int:
        """Bytes of the file consumed so far."""

    def close(self) -> None: ...


class PlainSource:
    compression = "none"

    def __init__(self, file: io.FileIO, size: int) -> None:
        self._file = file
        self.size = size
        self.problem: str | None = None

    def readinto(self, target: memoryview) -> int:
        return self._file.readinto(target) or 0

    def position(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        self._file.close()


class GzipSource:
    """zlib with a bounded output per call, so that a small file cannot ask for all memory; members may follow each other."""

    compression = "gzip"

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self.size = size
        self.problem: str | None = None
        self._inflate = zlib.decompressobj(31)
        self._waiting = b""

    def readinto(self, target: memoryview) -> int:
        while self.problem is None:
            if self._inflate.eof:
                self._waiting = self._inflate.unused_data or self._waiting
                self._waiting = (self._waiting or self._file.read(_PIECE)).lstrip(b"\0")
                if not self._waiting:
                    return 0
                self._inflate = zlib.decompressobj(31)
            data = self._waiting or self._file.read(_PIECE)
            if not data:
                self.problem = "the gzip stream ends before its end mark"
                return 0
            try:
                piece = self._inflate.decompress(data, len(target))
            except zlib.error as error:
                self.problem = f"the gzip stream is damaged ({error})"
                return 0
            self._waiting = self._inflate.unconsumed_tail
            if piece:
                target[: len(piece)] = piece
                return len(piece)
        return 0

    def position(self) -> int:
        return self._file.tell() - len(self._waiting)

    def close(self) -> None:
        self._file.close()


class ZstdSource:
    compression = "zstd"

    def __init__(self, file: BinaryIO, size: int) -> None:
        import zstandard  # a quarter of the start-up time of plain captures would go to an unused library

        self._file = file
        self.size = size
        self.problem: str | None = None
        self._error = zstandard.ZstdError
        header = file.read(18)
        file.seek(0)
        try:
            self._declared = zstandard.get_frame_parameters(header).content_size
        except zstandard.ZstdError as error:
            raise UnreadableCapture(f"{file.name}: the Zstandard frame has no valid header ({error})") from error
        self._unknown = zstandard.CONTENTSIZE_UNKNOWN
        self._written = 0
        decompressor = zstandard.ZstdDecompressor(max_window_size=_LARGEST_WINDOW)
        self._stream = decompressor.stream_reader(file, read_across_frames=True)

    def readinto(self, target: memoryview) -> int:
        if self.problem is not None:
            return 0
        try:
            count = int(self._stream.readinto(target))
        except self._error as error:
            self.problem = f"the Zstandard stream is damaged ({error})"
            return 0
        self._written += count
        if count == 0 and self._declared != self._unknown and self._written < self._declared:
            self.problem = f"the Zstandard stream ends {self._declared - self._written} bytes before its end"
        return count

    def position(self) -> int:
        return min(self._file.tell(), self.size)

    def close(self) -> None:
        self._file.close()


def open_source(path: str | Path) -> ByteSource:
    """Open ``path`` by what it begins with, whatever its name.

    Raises UnreadableCapture where there is no readable regular file or pipe.
    """
    try:
        file = io.FileIO(str(path), "rb")
    except OSError as error:
        raise UnreadableCapture(f"{path}: {error.strerror or error}") from error
    try:
        size = Path(path).stat().st_size
        if not file.seekable():
            return PlainSource(file, size)
        magic = file.read(4)
        file.seek(0)
    except OSError as error:
        file.close()
        raise UnreadableCapture(f"{path}: {error.strerror or error}") from error
    if magic[:2] == GZIP_MAGIC:
        return GzipSource(file, size)
    if magic == ZSTD_MAGIC:
        return ZstdSource(file, size)
    return PlainSource(file, size)
