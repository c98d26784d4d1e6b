"""Bytes of a capture file or pipe, plain or compressed, in bounded pieces."""

from __future__ import annotations

import io
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from analysis.capture.compressed import MAGICS, CompressedSource
from analysis.errors import CaptureError, UnreadableCapture

STANDARD_INPUT: Final = "-"
_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"


class PlainSource:
    """Bytes of a file or pipe that is not compressed; reads return 0 at its end."""

    compression = "none"

    def __init__(self, file: io.FileIO, size: int) -> None:
        self._file = file
        self.size = size
        self.problem: str | None = None
        self.unverified: str | None = None

    def readinto(self, target: memoryview) -> int:
        return self._file.readinto(target) or 0

    def position(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        self._file.close()


def open_source(path: str | Path) -> PlainSource | CompressedSource:
    """Open ``path`` as its first bytes require. Raises UnreadableCapture."""
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
    for compression, begin in MAGICS.items():
        if magic.startswith(begin):
            return CompressedSource(file, size, compression)
    if magic.startswith(_LZ4_MAGIC):
        file.close()
        raise UnreadableCapture(
            f"{path}: captures compressed with LZ4 are not supported; unpack it with `lz4 -d` first"
        )
    return PlainSource(file, size)


@contextmanager
def rereadable(path: str | Path) -> Iterator[str | Path]:
    """Yield ``path``, or the path of a copy of a pipe or standard input ("-").

    Analysis may read twice, tshark needs a file, and the first bytes determine the compression. Raises UnreadableCapture if the copy
    cannot be written.
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
