"""The bytes of a capture file or pipe, plain or compressed, in bounded pieces."""

from __future__ import annotations

import io
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, Protocol

from analysis.capture import compressed
from analysis.capture.bzip2 import Bzip2Source
from analysis.errors import CaptureError, UnreadableCapture

STANDARD_INPUT: Final = "-"
MOST_TIMES: Final = 16
"""How much longer than its file a compressed capture may be,"""
ALWAYS_BYTES: Final = 1 << 28
"""and how long it may be whatever its file's size."""


class ByteSource(Protocol):
    """Decompressed bytes in order; ``readinto`` returns 0 at the (present) end."""

    compression: str
    size: int
    """Bytes of the file on disk."""

    @property
    def problem(self) -> str | None:
        """Why the bytes ended before they should, when they did."""

    @property
    def unverified(self) -> str | None:
        """Why damage could have passed unnoticed where there is no problem."""

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
        self.unverified: str | None = None
        self.descriptor: int | None = file.fileno()
        """For who reads the same bytes without the interpreter."""

    def readinto(self, target: memoryview) -> int:
        return self._file.readinto(target) or 0

    def position(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        self._file.close()


class BoundedSource:
    """A compressed source that ends, with a problem, where it has become many times larger than its file.

    Packets shrink to a third or a tenth; a hundred megabytes that hold a terabyte of zeros were made to keep a processor busy.
    """

    descriptor: Final = None

    def __init__(self, source: ByteSource, *, most_times: int = MOST_TIMES, always: int = ALWAYS_BYTES) -> None:
        self._source = source
        self.compression, self.size = source.compression, source.size
        self._most = max(most_times * source.size, always)
        self._given = 0
        self._stopped: str | None = None

    @property
    def problem(self) -> str | None:
        return self._stopped or self._source.problem

    @property
    def unverified(self) -> str | None:
        return self._source.unverified

    def readinto(self, target: memoryview) -> int:
        if self._stopped is not None:
            return 0
        count = self._source.readinto(target)
        self._given += count
        if self._given > self._most:
            times = self._most // max(self.size, 1)
            self._stopped = (
                f"the {self.compression} stream is more than {times} times as long as its file, and was not read on"
            )
        return count

    def position(self) -> int:
        return self._source.position()

    def close(self) -> None:
        self._source.close()


_BY_MAGIC: Final[tuple[tuple[bytes, Callable[[BinaryIO, int], ByteSource]], ...]] = (
    (compressed.GZIP_MAGIC, compressed.GzipSource),
    (compressed.ZSTD_MAGIC, compressed.ZstdSource),
    (compressed.XZ_MAGIC, compressed.XzSource),
    (compressed.BZIP2_MAGIC, Bzip2Source),
)
_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"


def open_source(path: str | Path) -> PlainSource | BoundedSource:
    """Open ``path`` by what it begins with, whatever its name.

    Raises UnreadableCapture if there is no readable regular file or pipe, or it is compressed with LZ4.
    """
    try:
        file = io.FileIO(str(path), "rb")
    except OSError as error:
        raise UnreadableCapture(f"{path}: {error.strerror or error}") from error
    try:
        size = Path(path).stat().st_size
        if not file.seekable():
            return PlainSource(file, size)
        magic = file.read(8)
        file.seek(0)
    except OSError as error:
        file.close()
        raise UnreadableCapture(f"{path}: {error.strerror or error}") from error
    for begin, source in _BY_MAGIC:
        if magic.startswith(begin):
            return BoundedSource(source(file, size))
    if magic.startswith(_LZ4_MAGIC):
        file.close()
        raise UnreadableCapture(f"{path}: captures compressed with LZ4 are not read; decompress it first (lz4 -d)")
    return PlainSource(file, size)


def has_threads(path: str | Path) -> bool:
    """Whether the source of ``path`` unpacks on threads of its own, which stay on the cores of the thread that reads."""
    try:
        with Path(path).open("rb") as file:
            return file.read(len(compressed.BZIP2_MAGIC)) == compressed.BZIP2_MAGIC
    except OSError:
        return False


@contextmanager
def rereadable(path: str | Path) -> Iterator[str | Path]:
    """A path that can be opened again and again: ``path`` itself, or a copy of what a pipe or standard input ("-") gives.

    An analysis may need a second reading, tshark wants a file of its own, and compression is told by the first bytes.
    Raises UnreadableCapture where there is no room for the copy.
    """
    if str(path) != STANDARD_INPUT and not _is_pipe(path):
        yield path
        return
    with tempfile.NamedTemporaryFile(prefix="capture-") as copy:
        try:
            with _opened(path) as pipe:
                shutil.copyfileobj(pipe, copy)
            copy.flush()
        except OSError as error:
            raise UnreadableCapture(f"{path}: {error.strerror or error}") from error
        try:
            yield copy.name
        except CaptureError as error:
            raise type(error)(str(error).replace(copy.name, str(path))) from error


def _opened(path: str | Path) -> BinaryIO:
    if str(path) == STANDARD_INPUT:
        return os.fdopen(os.dup(sys.stdin.fileno()), "rb")
    return Path(path).open("rb")


def _is_pipe(path: str | Path) -> bool:
    try:
        mode = Path(path).stat().st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISCHR(mode)
