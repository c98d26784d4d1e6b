"""bzip2 on two threads: its blocks say nothing of each other, and begin with a mark that can be found.

Each block becomes a stream of its own, which libbz2 unpacks and verifies; the checks of whole streams are made here. Where a block is
not one, a single decompressor goes on from its beginning, and gives what lies before the damage. (48 bits that look like a mark and are
none, once in thirty million megabytes, would end there as well.)
"""

from __future__ import annotations

import bz2
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt

from analysis.capture.compressed import TOO_MANY, Effort
from analysis.kernels.frames import bits

_BLOCK, _LAST = 0x314159265359, 0x177245385090
_CHECK_BITS: Final = 48 + 32
"""A mark and the check sum behind it."""
_LONGEST_BLOCK: Final = 1 << 22
"""18 002 groups of 50 codes of at most 20 bits are shorter."""
_READ: Final = 1 << 20
_AT_ONCE: Final = 1 << 20
"""Bytes that are unpacked ahead: a whole block, unless it says the same byte again and again."""
_FINE: Final = 4096
"""Bytes at a time where a fault is near, so that what lies before it is given."""
_AHEAD: Final = 4
_BLOCK_US: Final = 60
"""Beside its content."""
Buffer = npt.NDArray[np.uint8]


def _likely() -> npt.NDArray[np.bool_]:
    """Shape (65536,): what the fifth and sixth byte from behind are in marks that end at any bit of the last one."""
    table = np.zeros(1 << 16, np.bool_)
    for mark in (_BLOCK, _LAST):
        for shift in range(8):
            table[(mark << shift) >> 8 & 0xFFFF] = True
    return table


class _Damaged(Exception):
    """The stream is not what its checks say."""


class Bzip2Source:
    """See ``compressed.StreamSource``, whose words are the same."""

    compression = "bzip2"

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self.size = size
        self.problem: str | None = None
        self.unverified: str | None = None
        self._data: Buffer = np.zeros(0, np.uint8)
        self._begins = 0
        """The byte of the file that the data begin with; all places are bits of the file."""
        self._marks: deque[tuple[int, bool]] = deque()
        self._likely = _likely()
        self._workers = ThreadPoolExecutor(2, "bzip2")
        self._pieces = self._all_pieces()
        self._waiting = memoryview(b"")
        self._effort = Effort()

    def readinto(self, target: memoryview) -> int:
        while not len(self._waiting):
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._waiting = memoryview(piece)
        count = min(len(target), len(self._waiting))
        target[:count] = self._waiting[:count]
        self._waiting = self._waiting[count:]
        return count

    def position(self) -> int:
        return min(self._file.tell(), self.size)

    def close(self) -> None:
        self._pieces.close()
        self._workers.shutdown(cancel_futures=True)
        self._file.close()

    # Bits of the file

    def _read(self) -> bool:
        """Hold more of the file, and note the marks in it."""
        piece = self._file.read(_READ)
        known = len(self._data)
        self._data = np.concatenate([self._data, np.frombuffer(piece, np.uint8)])
        most = len(piece) // 6 + 2  # they do not overlap
        places, kinds = np.empty(most, np.int64), np.empty(most, np.bool_)
        found = bits.find_marks(self._data, known, len(self._data), self._likely, _BLOCK, _LAST, places, kinds)
        begins = (places[:found] + 8 * self._begins).tolist()
        self._marks.extend(zip(begins, kinds[:found].tolist(), strict=True))
        return len(piece) > 0

    def _forget_before(self, place: int) -> None:
        gone = (place >> 3) - self._begins
        if gone >= _READ:
            self._data = self._data[gone:]
            self._begins += gone

    def _mark(self, place: int) -> tuple[int, bool] | None:
        """The first mark from ``place`` on, if one is near."""
        while True:
            while self._marks and self._marks[0][0] < place:
                self._marks.popleft()
            if self._marks:
                return self._marks[0]
            if 8 * (self._begins + len(self._data)) - place > 8 * _LONGEST_BLOCK or not self._read():
                return None

    def _bytes(self, place: int, count: int) -> bytes:
        """Bytes from a bit on, fewer at the end of the file."""
        while 8 * (self._begins + len(self._data)) < place + 8 * count and self._read():
            pass
        count = min(count, max((8 * (self._begins + len(self._data)) - place) // 8, 0))
        out = np.zeros(count, np.uint8)
        bits.move_bits(self._data, place - 8 * self._begins, out, 0, count)
        return out.tobytes()

    # Streams and blocks

    def _all_pieces(self) -> Generator[bytes, None, None]:
        """The whole content; ``problem`` is set where it ends before it should."""
        place = 0
        try:
            while place is not None:
                place = yield from self._stream(place)
        except _Damaged as error:
            self.problem = str(error) or "the bzip2 stream is damaged (Invalid data stream)"

    def _stream(self, place: int) -> Any:
        """The content of one stream; returns the bit that the next one begins at, None at the end of the file."""
        header = self._bytes(place, 4)
        if header[:3] != b"BZh" or not b"1" <= header[3:] <= b"9":
            if b"BZh9".startswith(header[:3]) and len(header) < 4:
                raise _Damaged("the bzip2 stream ends before its end mark")
            raise _Damaged
        waiting: deque[tuple[Future[tuple[Any, bytes] | None], int]] = deque()
        place, combined = place + 32, 0
        while True:
            if self._effort.is_spent(_BLOCK_US, place >> 3):
                for job, begin in waiting:
                    yield from self._unpacked(job, begin, header)
                raise _Damaged(f"the bzip2 stream {TOO_MANY}")
            mark = self._mark(place)
            near = None if mark is None or mark[0] != place else mark
            check = int.from_bytes(self._bytes(place + 48, 4)) if near else 0
            following = self._mark(place + _CHECK_BITS) if near and not near[1] else None
            if near is None or not (near[1] or following):
                for job, begin in waiting:
                    yield from self._unpacked(job, begin, header)
                yield from self._one_by_one(place, header, 0)
                return None
            if near[1]:
                break
            combined = (combined << 1 | combined >> 31) & 0xFFFFFFFF ^ check
            waiting.append((self._workers.submit(_unpack, self._alone(place, following, header, check)), place))
            place = following[0] if following else place
            if len(waiting) >= _AHEAD:
                yield from self._unpacked(*waiting.popleft(), header)
                self._forget_before(waiting[0][1])
        for job, begin in waiting:
            yield from self._unpacked(job, begin, header)
        if len(self._bytes(place + 48, 4)) < 4:
            raise _Damaged("the bzip2 stream ends before its end mark")
        if check != combined:
            raise _Damaged
        return self._behind(place + _CHECK_BITS)

    def _behind(self, place: int) -> int | None:
        """Where the next stream begins, zeros passed over; None at the end of the file."""
        place = (place + 7) // 8 * 8
        while some := self._bytes(place, _FINE):
            zeros = len(some) - len(some.lstrip(b"\0"))
            place += 8 * zeros
            self._forget_before(place)
            if zeros < len(some):
                return place
        return None

    def _alone(self, place: int, following: tuple[int, bool] | None, header: bytes, check: int) -> bytes:
        """A block from ``place`` to the next mark as a stream of its own."""
        length = (following[0] if following else place) - place
        out = np.zeros(4 + (length + _CHECK_BITS + 7) // 8, np.uint8)
        out[:4] = np.frombuffer(header, np.uint8)
        bits.move_bits(self._data, place - 8 * self._begins, out, 4, (length + 7) // 8)
        bits.write_bits(out, 32 + length, _LAST, 48)
        bits.write_bits(out, 32 + length + 48, check, 32)
        return out.tobytes()

    def _unpacked(self, job: Future[tuple[Any, bytes] | None], place: int, header: bytes) -> Iterator[bytes]:
        """The content of a block that was unpacked ahead, or the rest of the stream, one by one, where it is none."""
        done, given = job.result(), 0
        if done is not None:
            decompressor, piece = done
            try:
                while True:
                    given += len(piece)
                    yield piece
                    if decompressor.eof:
                        return
                    piece = decompressor.decompress(b"", _AT_ONCE)
                    if not piece and decompressor.needs_input:
                        break
            except OSError:
                pass
        yield from self._one_by_one(place, header, given)
        raise _Damaged

    def _one_by_one(self, place: int, header: bytes, given: int) -> Iterator[bytes]:
        """What one decompressor makes of everything from the block at ``place`` on, but for ``given`` bytes; always ends in a problem."""
        decompressor, data = bz2.BZ2Decompressor(), header
        while not decompressor.eof:
            try:
                piece = decompressor.decompress(data, _FINE)
            except OSError as error:
                raise _Damaged(f"the bzip2 stream is damaged ({error})") from error
            data = b""
            passed = min(given, len(piece))
            given -= passed
            if len(piece) > passed:
                yield piece[passed:]
            if decompressor.needs_input:
                data = self._bytes(place, _FINE)
                place += 8 * len(data)
                self._forget_before(place)
                if not data:
                    raise _Damaged("the bzip2 stream ends before its end mark")


def _unpack(stream: bytes) -> tuple[Any, bytes] | None:
    """The beginning of a block and what gives the rest; None where it is none."""
    decompressor = bz2.BZ2Decompressor()
    try:
        piece = decompressor.decompress(stream, _AT_ONCE)
    except OSError:
        return None
    return (decompressor, piece) if piece or decompressor.eof else None
