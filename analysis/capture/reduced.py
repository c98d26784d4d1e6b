"""A capture without the contents of its packets: headers alone, with the lengths that the packets had.

Everything that is computed of headers is the same as before; what opens a connection of Open MPI is kept, so that ranks are known.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import shutil
import struct
import tempfile
from contextlib import closing
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from analysis.capture.anonymised import Anonymiser
from analysis.capture.block import Block
from analysis.capture.formats import Buffer, CaptureFormat, PcapFormat
from analysis.capture.link_types import named
from analysis.capture.stream import MOST_ROWS, CaptureReader
from analysis.errors import UnsupportedCapture
from analysis.kernels.frames import headers
from analysis.kernels.frames.link_layers import INFINIBAND_IP
from analysis.packets import NO_TIME

_MOST_BEFORE: Final = 36
"""Bytes of a record besides those of the frame, with the most padding."""
_PLACES: Final = 1 << 14
_SECTION, _INTERFACE, _STATISTICS = 0x0A0D0D0A, 1, 5
_END, _RESOLUTION, _RECEIVED, _BY_INTERFACE, _DROPPED = 0, 9, 4, 5, 7
_SNAP: Final = 1 << 18


class CannotReduce(UnsupportedCapture):
    """A capture that would say less, or something else, if it were written anew."""


def write_reduced(
    path: str | Path, target: IO[bytes], *, hide: Anonymiser | None = None, scratch: str | None = None
) -> int:
    """Write the headers of a capture in its own format and compression; returns the number of packets.

    What is written lies uncompressed in the directory ``scratch`` meanwhile (otherwise where temporary files do), under no name.

    With ``hide`` addresses are replaced, and checksums and options that tell about them are zero. Raise CannotReduce for what is
    damaged, cut off or has no times, UnreadableCapture and UnsupportedCapture as the decoder does.
    """
    with tempfile.TemporaryFile(dir=scratch) as plain, closing(_Reducer(path, plain, hide)) as reducer:
        facts = reducer.run()
        size = plain.tell()
        plain.seek(0)
        _compressed(plain, size, target, facts)
    return reducer.packets


class _Reducer(CaptureReader):
    """Reads as the decoder does; in place of decoding, frames are written."""

    def __init__(self, path: str | Path, target: IO[bytes], hide: Anonymiser | None) -> None:
        super().__init__(path)
        self._writer = self._decoder = _Writer(target, hide)  # type: ignore[assignment]
        self._hides = hide is not None

    def _look_at_links(self, known: CaptureFormat, block: Block, first: int, last: int) -> None:
        """Refuse frames in which addresses would stay, besides those that the decoder refuses."""
        super()._look_at_links(known, block, first, last)
        if self._hides and np.any(block.links(first, last) == INFINIBAND_IP):
            raise CannotReduce(f"it has frames whose addresses would stay ({named(INFINIBAND_IP)})")

    def run(self) -> dict[str, Any]:
        """Write all of it; returns what is known of the file."""
        more = True
        while more:
            block = Block(MOST_ROWS)
            known = self._format or self._read_header()
            if known is None:
                break
            self._writer.begin(classic=isinstance(known, PcapFormat), link=min(known.link_types, default=0))
            rows, more = self._fill_block(block)
            self.packets += rows
        self.finish()
        facts = self.facts()
        if facts["damaged"] or facts["truncated_tail"] or facts["stream_problem"] or facts["undefined_interface"]:
            why = "; ".join(facts["notes"]) or "it ends within a packet, or has packets of no interface"
            raise CannotReduce(f"it is not whole: {why}")
        self._writer.end(facts)
        return facts


class _Writer:
    """In the place of a decoder: gets frames where they lie in the buffer, and writes their headers."""

    def __init__(self, target: IO[bytes], hide: Anonymiser | None) -> None:
        self._target, self._hide = target, hide
        self._classic: bool | None = None
        self._interfaces: dict[int, int] = {}
        self._places, self._counts = np.empty((3, _PLACES), np.int64), np.zeros(3, np.int64)

    def begin(self, *, classic: bool, link: int) -> None:
        """Write what a file begins with, once; ``classic`` for pcap, whose one link type is ``link``."""
        if self._classic is not None:
            return
        self._classic = classic
        if classic:
            self._target.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, _SNAP, link))
        else:
            self._target.write(_block(_SECTION, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)))

    def decode(self, data: Buffer, block: Block, first: int, last: int) -> None:
        """Write the frames of rows ``first`` to ``last``, whose bytes lie in ``data`` and are read by nobody afterwards."""
        rows = last - first
        if not rows:
            return
        times, orig_len, cap_len, offsets, links = (column[:rows] for column in block.framing_columns(first))
        if (times == NO_TIME).any() or (times < 0).any():
            raise CannotReduce("it has packets without a time")
        kept = np.empty(rows, np.uint32)
        hide, done = self._hide is not None, 0
        while done < rows:
            self._counts[:] = 0
            some = (offsets[done:], links[done:], cap_len[done:], kept[done:])
            done += headers.find_headers(data, data.ctypes.data, *some, self._places, self._counts, hide)
            if self._hide is not None:
                for kind, size in ((headers.IPV4, 4), (headers.IPV6, 16), (headers.MAC, 6)):
                    self._hide.replace(data, self._places[kind, : self._counts[kind]], size)
        numbers = np.array([self._number(link) for link in links.tolist()], np.int64)
        out = np.empty(int(kept.sum(dtype=np.int64)) + _MOST_BEFORE * rows, np.uint8)
        size = headers.write_records(data, offsets, kept, orig_len, times, numbers, not self._classic, out)
        self._target.write(out[:size].data)

    def _number(self, link: int) -> int:
        """The interface of frames of a link type, described when the first of them comes."""
        if link not in self._interfaces:
            self._interfaces[link] = len(self._interfaces)
            if not self._classic:
                resolution = _option(_RESOLUTION, bytes([9])) + _option(_END, b"")
                self._target.write(_block(_INTERFACE, struct.pack("<HHI", link, 0, _SNAP) + resolution))
        return self._interfaces[link]

    def end(self, facts: dict[str, Any]) -> None:
        """Write what the recorder counted."""
        named = (("received", _RECEIVED), ("dropped_by_interface", _BY_INTERFACE), ("dropped", _DROPPED))
        counted = [_option(code, struct.pack("<Q", facts[name])) for name, code in named if name in facts]
        if counted and not self._classic:
            for link in sorted(facts["link_types"])[:1]:
                self._number(link)
            self._target.write(
                _block(_STATISTICS, struct.pack("<III", 0, 0, 0) + b"".join(counted) + _option(_END, b""))
            )

    def facts(self) -> dict[str, Any]:
        """Nothing besides what the reader knows."""
        return {}


def _block(kind: int, body: bytes) -> bytes:
    length = len(body) + 12
    return struct.pack("<II", kind, length) + body + struct.pack("<I", length)


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)


def _compressed(plain: IO[bytes], size: int, target: IO[bytes], facts: dict[str, Any]) -> None:
    """Copy what is plain as the original was compressed; it says that it was verified only where the original did."""
    kind = facts["compression"]
    if kind == "zstd":
        import zstandard

        verified = facts["unverified"] is None
        compressor = zstandard.ZstdCompressor(level=3, write_checksum=verified, write_content_size=True)
        compressor.copy_stream(plain, target, size=size)
        return
    if kind == "none":
        shutil.copyfileobj(plain, target)
        return
    opened: Any = {"gzip": gzip.open, "xz": lzma.open, "bzip2": bz2.open}[kind]
    with opened(target, "wb") as stream:
        shutil.copyfileobj(plain, stream)
