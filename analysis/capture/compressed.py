"""Compressed captures: gzip, bzip2, xz and, by the package zstandard, Zstandard.

Content before damage is returned, a stream without its end mark has a problem, and the unpacked size is bounded.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from typing import Any, Final

MAGICS: Final = {"gzip": b"\x1f\x8b", "bzip2": b"BZh", "xz": b"\xfd7zXZ\0", "zstd": b"\x28\xb5\x2f\xfd"}
MOST_TIMES: Final = 16
"""Largest ratio of unpacked to compressed bytes,"""
ALWAYS_BYTES: Final = 1 << 28
"""and the unpacked bytes that are always allowed."""
_MOST_EMPTY: Final = 1 << 24
"""Bytes of the file without content: streams may be empty, and reading 1 GiB of them takes minutes."""
_LARGEST_WINDOW: Final = 1 << 27
"""Streams may request any amount of memory; 128 MiB is the default limit of `zstd` itself."""
_PIECE: Final = 1 << 13
_ZSTD_PIECE: Final = 2048
"""Bytes read at a time: at most 64 MiB of content, as 4 bytes may encode 128 KiB."""
_ZSTD_HEADER: Final = 18
"""The most bytes of a frame's header."""


class CompressedSource:
    """Content of a compressed file.

    ``readinto`` returns 0 at its end or at a ``problem``. Captures shrink to a third or a tenth; 100 MB that hold a
    terabyte of zeros are an attack.
    """

    def __init__(self, file: io.FileIO, size: int, compression: str) -> None:
        self._file = file
        self.size = size
        self.compression = compression
        self.problem: str | None = None
        self._bytes = _Bytes(file)
        self._stream = _FILES[compression](self._bytes)
        self._unpacked_bytes, self._most = 0, max(MOST_TIMES * size, ALWAYS_BYTES)

    @property
    def unverified(self) -> str | None:
        """Return why damage may be unnoticed; None if the content has checksums."""
        if isinstance(self._stream, _Streams | _ZstdFile) and not self._stream.is_checked:
            return f"the {self.compression} stream has no checksum, so its content is not verified"
        return None

    def readinto(self, target: memoryview) -> int:
        if self.problem is not None:
            return 0
        try:
            content = self._stream.read1(len(target))
        except EOFError:
            self.problem = f"the {self.compression} stream ends before its end mark"
            return 0
        except (OSError, zlib.error, lzma.LZMAError) as error:
            self.problem = f"the {self.compression} stream is damaged ({error})"
            return 0
        target[: len(content)] = content
        self._bytes.empty = 0
        self._unpacked_bytes += len(content)
        if self._unpacked_bytes > self._most:
            times = self._most // max(self.size, 1)
            self.problem = f"the {self.compression} stream is more than {times} times as long as its file, and was not read further"
        return len(content)

    def position(self) -> int:
        """Return the bytes of the file consumed so far."""
        return self._file.tell()

    def close(self) -> None:
        self._file.close()


class _Bytes:
    """The bytes of a compressed file; ``empty`` counts those since the last content."""

    def __init__(self, file: io.FileIO) -> None:
        self._file, self.empty = file, 0

    def read(self, most: int) -> bytes:
        if self.empty > _MOST_EMPTY:
            raise OSError(f"{self.empty} bytes of it have no content")
        content = self._file.read(most)
        self.empty += len(content)
        return content


class _Streams:
    """Consecutive streams of bzip2 or xz; library readers miss damage between them."""

    def __init__(self, file: _Bytes, begin: Callable[[], bz2.BZ2Decompressor | lzma.LZMADecompressor]) -> None:
        self._file = file
        self._begin = begin
        self._stream = begin()
        self.is_checked = True
        """True if all streams so far have a checksum."""

    def read1(self, most: int) -> bytes:
        """Return up to ``most`` bytes. Raises EOFError, OSError and LZMAError."""
        content = b""
        while not content:
            if self._stream.eof:
                data = self._next_stream()
                if not data:
                    break
                self._stream = self._begin()
            elif self._stream.needs_input:
                data = self._file.read(_PIECE)
                if not data:
                    raise EOFError
            else:
                data = b""
            content = self._stream.decompress(data, most)
            if isinstance(self._stream, lzma.LZMADecompressor):
                self.is_checked &= self._stream.check != lzma.CHECK_NONE
        return content

    def _next_stream(self) -> bytes:
        """Return the first bytes of the next stream, after padding of xz."""
        data, padding = self._stream.unused_data or self._file.read(_PIECE), 0
        while isinstance(self._stream, lzma.LZMADecompressor) and data.startswith(b"\0"):
            stream = data.lstrip(b"\0")
            padding += len(data) - len(stream)
            data = stream or self._file.read(_PIECE)
        if padding % 4:
            raise OSError("its padding is not a multiple of 4 bytes")
        return data


class _ZstdFile:
    """Consecutive frames of Zstandard; zstandard's own reader misses a lost end."""

    def __init__(self, file: _Bytes) -> None:
        import zstandard  # slow to import, and plain captures need none of it

        self._zstandard = zstandard
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=_LARGEST_WINDOW)
        self._file = file
        self._frame: Any = None
        self._content = memoryview(b"")
        self.is_checked = True
        """True if all frames so far have a checksum."""

    def read1(self, most: int) -> memoryview:
        """Return up to ``most`` bytes. Raises EOFError and OSError."""
        try:
            while not self._content:
                if self._frame is None or self._frame.eof:
                    unused = self._frame.unused_data if self._frame else b""
                    data = unused if len(unused) >= _ZSTD_HEADER else unused + self._file.read(_ZSTD_PIECE)
                    if not data:
                        break
                    self._frame = self._begin(data)
                else:
                    data = self._file.read(_ZSTD_PIECE)
                    if not data:
                        raise EOFError
                self._content = memoryview(self._frame.decompress(data))
        except self._zstandard.ZstdError as error:
            raise OSError(str(error)) from error
        content, self._content = self._content[:most], self._content[most:]
        return content

    def _begin(self, data: bytes) -> Any:
        if data.startswith(MAGICS["zstd"]):  # and not one of the frames that are skipped
            self.is_checked &= self._zstandard.get_frame_parameters(data).has_checksum
        return self._decompressor.decompressobj()


_FILES: Final[dict[str, Callable[[_Bytes], Any]]] = {
    "gzip": lambda file: gzip.GzipFile(fileobj=file, mode="rb"),  # type: ignore[call-overload]
    "bzip2": lambda file: _Streams(file, bz2.BZ2Decompressor),
    "xz": lambda file: _Streams(file, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=2 * _LARGEST_WINDOW)),
    "zstd": _ZstdFile,
}
"""Readers with ``read1``."""
