"""Compressed captures: gzip, Zstandard and xz (bzip2: ``capture.bzip2``), with a bounded output per call and their ends verified.

A small file cannot ask for all memory, what was read before damage is given out, and a stream without its end mark has a problem.
"""

from __future__ import annotations

import lzma
import zlib
from abc import ABC, abstractmethod
from typing import Any, BinaryIO, Final

GZIP_MAGIC: Final = b"\x1f\x8b"
ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
XZ_MAGIC: Final = b"\xfd7zXZ\0"
BZIP2_MAGIC: Final = b"BZh"
_PIECE: Final = 1 << 18
_LARGEST_WINDOW: Final = 1 << 27
"""Streams may ask the reader for any amount of memory; 128 MiB is what `zstd` itself accepts unasked."""
_SKIPPABLE: Final = range(0x184D2A50, 0x184D2A60)
_CHECKSUM_BYTES: Final = 4


class Effort:
    """What streams, frames and blocks of a file may cost beside their content: 100 MB of empty ones were made to be waited for.

    About a second, and 4 s more for 100 MB; no program that writes captures makes as many.
    """

    STREAM_US: Final = 3
    FRAME_US: Final = 14
    BLOCK_US: Final = 2

    def __init__(self) -> None:
        self._spent_us = 0.0

    def is_spent(self, cost_us: float, position: int) -> bool:
        """Whether there was too much of it before the byte ``position`` of the file, ``cost_us`` included."""
        self._spent_us += cost_us
        return self._spent_us > 1e6 + 0.04 * position


TOO_MANY: Final = "has more streams, frames or blocks than any capture, and was not read on"


class StreamSource(ABC):
    """Streams that may follow each other, inflated by an object with ``decompress(data, most)``, ``eof`` and ``unused_data``."""

    compression = ""
    errors: tuple[type[Exception], ...] = ()

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self.size = size
        self.problem: str | None = None
        self.unverified: str | None = None
        self._inflate = self._begin()
        self._waiting = b""
        self._effort = Effort()

    @abstractmethod
    def _begin(self) -> Any:
        """What inflates the next stream."""

    def _more(self) -> bytes:
        """What the present stream shall take next; empty at the end of the file."""
        return self._waiting or self._file.read(_PIECE)

    def _left(self) -> bytes:
        """What the last call did not take."""
        return b""

    def readinto(self, target: memoryview) -> int:
        while self.problem is None:
            if self._inflate.eof:
                self._waiting = (self._inflate.unused_data or self._file.read(_PIECE)).lstrip(b"\0")
                if not self._waiting:
                    return 0
                if self._effort.is_spent(Effort.STREAM_US, self._file.tell()):
                    self.problem = f"the {self.compression} stream {TOO_MANY}"
                    return 0
                self._inflate = self._begin()
            data = b"" if self._holds_more() else self._more()
            if not data and not self._holds_more():
                self.problem = f"the {self.compression} stream ends before its end mark"
                return 0
            try:
                piece = self._inflate.decompress(data, len(target))
            except self.errors as error:
                self.problem = f"the {self.compression} stream is damaged ({error})"
                return 0
            self._waiting = self._left()
            if piece:
                target[: len(piece)] = piece
                return len(piece)
        return 0

    def _holds_more(self) -> bool:
        """Whether the inflating object can go on without further bytes."""
        return False

    def position(self) -> int:
        return self._file.tell() - len(self._waiting)

    def close(self) -> None:
        self._file.close()


class GzipSource(StreamSource):
    compression = "gzip"
    errors = (zlib.error,)

    def _begin(self) -> Any:
        return zlib.decompressobj(31)

    def _left(self) -> bytes:
        left: bytes = self._inflate.unconsumed_tail
        return left


class XzSource(StreamSource):
    compression = "xz"
    errors = (lzma.LZMAError,)

    def _begin(self) -> Any:
        return lzma.LZMADecompressor(memlimit=2 * _LARGEST_WINDOW)

    def _holds_more(self) -> bool:
        return not self._inflate.needs_input and not self._inflate.eof

    def readinto(self, target: memoryview) -> int:
        count = super().readinto(target)
        if self._inflate.check == lzma.CHECK_NONE:
            self.unverified = "the xz stream has no check of its content, so that is not verified"
        return count


class _TooMany(Exception):
    """See TOO_MANY."""


class ZstdSource:
    """Frame by frame and block by block: a block gives 128 KiB at most, and a frame counts only with its end.

    A frame says by a checksum, or at least by its size, whether its content is what was written; one that has neither can
    hide damage, but not a cut.
    """

    compression = "zstd"

    def __init__(self, file: BinaryIO, size: int) -> None:
        import zstandard  # a quarter of the start-up time of plain captures would go to an unused library

        self._zstandard = zstandard
        self._file = file
        self.size = size
        self.problem: str | None = None
        self.unverified: str | None = None
        self._frame: Any = None
        self._checked = False
        self._waiting = b""
        self._effort = Effort()

    def readinto(self, target: memoryview) -> int:
        while not self._waiting:
            if self.problem is not None:
                return 0
            try:
                if self._frame is None and not self._begin():
                    return 0
                self._waiting = self._block()
            except _TooMany:
                self.problem = f"the zstd stream {TOO_MANY}"
            except EOFError:
                self.problem = "the zstd stream ends before its end mark"
            except (self._zstandard.ZstdError, ValueError) as error:
                self.problem = f"the zstd stream is damaged ({error})"
        count = min(len(target), len(self._waiting))
        target[:count] = self._waiting[:count]
        self._waiting = self._waiting[count:]
        return count

    def _begin(self) -> bool:
        """Read the header of the next frame; False behind the last one."""
        while magic := self._file.read(4):
            kind = int.from_bytes(magic, "little")
            self._spend(Effort.BLOCK_US if kind in _SKIPPABLE else Effort.FRAME_US)
            if kind in _SKIPPABLE:
                self._file.seek(int.from_bytes(self._exactly(4), "little"), 1)
                if self._file.tell() > self.size:
                    raise EOFError
                continue
            if magic != ZSTD_MAGIC:
                raise ValueError("what follows a frame is none")
            header = magic + self._exactly(1)
            header += self._exactly(self._zstandard.frame_header_size(header + bytes(13)) - len(header))
            facts = self._zstandard.get_frame_parameters(header)
            self._checked = facts.has_checksum
            if not self._checked:
                self.unverified = "the zstd stream has no checksum, so its content is not verified"
            self._frame = self._zstandard.ZstdDecompressor(max_window_size=_LARGEST_WINDOW).decompressobj()
            self._frame.decompress(header)
            return True
        return False

    def _block(self) -> bytes:
        """The content of the frame's next block; behind the last one the frame's checksum is held against all of them."""
        head = self._exactly(3)
        self._spend(Effort.BLOCK_US)
        facts = int.from_bytes(head, "little")
        last, kind, length = facts & 1, facts >> 1 & 3, facts >> 3
        frame, content = self._frame, self._exactly(1 if kind == 1 else length)
        if last:
            self._frame = None
        piece: bytes = frame.decompress(head + content)
        if last and self._checked:
            try:
                piece += frame.decompress(self._exactly(_CHECKSUM_BYTES))
            except EOFError:
                self.problem = "the zstd stream ends inside its checksum"
            except self._zstandard.ZstdError as error:
                self.problem = f"the zstd stream is damaged ({error})"
        return piece

    def _spend(self, cost_us: float) -> None:
        if self._effort.is_spent(cost_us, self._file.tell()):
            raise _TooMany

    def _exactly(self, count: int) -> bytes:
        data = self._file.read(count)
        if len(data) < count:
            raise EOFError
        return data

    def position(self) -> int:
        return min(self._file.tell(), self.size)

    def close(self) -> None:
        self._file.close()
