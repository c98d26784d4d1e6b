"""A capture without payload: headers only, with the original lengths.

All results that depend on headers stay the same. The handshake of Open MPI is kept, because it names the ranks.
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
from analysis.capture.formats import Block, Buffer, CaptureFormat, PcapFormat
from analysis.capture.stream import MOST_ROWS, CaptureReader, link_type_name
from analysis.errors import UnsupportedCapture
from analysis.kernels.frames import headers
from analysis.kernels.frames.link_layers import INFINIBAND_IP
from analysis.packets import NO_TIME

_MOST_BEFORE: Final = 36
"""Bytes of a record in addition to the frame, with the most padding."""
_PLACES: Final = 1 << 14
_SECTION, _INTERFACE, _STATISTICS = 0x0A0D0D0A, 1, 5
_END, _RESOLUTION, _RECEIVED, _BY_INTERFACE, _DROPPED = 0, 9, 4, 5, 7
_SNAP: Final = 1 << 18


class CannotReduce(UnsupportedCapture):
    """The capture would lose information if it were rewritten."""


def write_reduced(
    path: str | Path, target: IO[bytes], *, hide: Anonymiser | None = None, scratch: IO[bytes] | None = None
) -> int:
    """Write the headers of a capture in its format; return the number of packets.

    An uncompressed copy is in the empty file ``scratch`` (default: an unnamed temporary one) meanwhile. With ``hide`` addresses
    are replaced; checksums and options that depend on them become zero. Raises CannotReduce for captures that are damaged,
    truncated or without times, and UnreadableCapture and UnsupportedCapture as the decoder does.
    """
    with scratch or tempfile.TemporaryFile() as plain, closing(_Reducer(path, plain, hide)) as reducer:
        facts = reducer.run()
        size = plain.tell()
        plain.seek(0)
        _compressed(plain, size, target, facts)
    return reducer.packets


class _Reducer(CaptureReader):
    """Reads like the decoder, and writes frames instead of decoding them."""

    def __init__(self, path: str | Path, target: IO[bytes], hide: Anonymiser | None) -> None:
        super().__init__(path)
        self._writer = self._decoder = _Writer(target, hide)  # type: ignore[assignment]
        self._hides = hide is not None

    def _look_at_links(self, capture_format: CaptureFormat, block: Block, first: int, last: int) -> None:
        """Refuse frames whose addresses cannot be replaced, too."""
        super()._look_at_links(capture_format, block, first, last)
        if self._hides and np.any(block.links(first, last) == INFINIBAND_IP):
            raise CannotReduce(f"it has frames whose addresses would stay ({link_type_name(INFINIBAND_IP)})")

    def run(self) -> dict[str, Any]:
        more = True
        while more:
            block = Block(MOST_ROWS)
            capture_format = self._format or self._read_header()
            if capture_format is None:
                break
            self._writer.begin(
                classic=isinstance(capture_format, PcapFormat), link=min(capture_format.link_types, default=0)
            )
            rows, more = self._fill_block(block)
            self.packets += rows
        self.finish()
        facts = self.facts()
        if facts["damaged"] or facts["truncated_tail"] or facts["stream_problem"] or facts["undefined_interface"]:
            why = "; ".join(facts["notes"]) or "it ends within a packet, or has packets of no interface"
            raise CannotReduce(f"it is incomplete: {why}")
        self._writer.end(facts)
        return facts


class _Writer:
    """Substitute for a decoder: gets frames in the buffer and writes their headers."""

    def __init__(self, target: IO[bytes], hide: Anonymiser | None) -> None:
        self._target, self._hide = target, hide
        self._classic: bool | None = None
        self._interfaces: dict[int, int] = {}
        self._places, self._counts = np.empty((3, _PLACES), np.int64), np.zeros(3, np.int64)

    def begin(self, *, classic: bool, link: int) -> None:
        """Write the file header once; ``classic`` is pcap with link type ``link``."""
        if self._classic is not None:
            return
        self._classic = classic
        if classic:
            self._target.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, _SNAP, link))
        else:
            self._target.write(_block(_SECTION, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)))

    def decode(self, data: Buffer, block: Block, first: int, last: int) -> None:
        """Write the frames of rows ``first`` to ``last``; ``data`` is overwritten."""
        rows = last - first
        if not rows:
            return
        times, orig_len, cap_len, offsets, links = (column[:rows] for column in block.framing_columns(first))
        if (times == NO_TIME).any() or (times < 0).any():
            raise CannotReduce("it has packets without a time")
        header_bytes = np.empty(rows, np.uint32)
        hide, done = self._hide is not None, 0
        while done < rows:
            self._counts[:] = 0
            some = (offsets[done:], links[done:], cap_len[done:], header_bytes[done:])
            done += headers.find_headers(data, data.ctypes.data, *some, self._places, self._counts, hide)
            if self._hide is not None:
                for kind, size in ((headers.IPV4, 4), (headers.IPV6, 16), (headers.MAC, 6)):
                    self._hide.replace(data, self._places[kind, : self._counts[kind]], size)
        numbers = np.array([self._number(link) for link in links.tolist()], np.int64)
        out = np.empty(int(header_bytes.sum(dtype=np.int64)) + _MOST_BEFORE * rows, np.uint8)
        size = headers.write_records(data, offsets, header_bytes, orig_len, times, numbers, not self._classic, out)
        self._target.write(out[:size].data)

    def _number(self, link: int) -> int:
        """Return the interface of a link type; describe it before its first frame."""
        if link not in self._interfaces:
            self._interfaces[link] = len(self._interfaces)
            if not self._classic:
                resolution = _option(_RESOLUTION, bytes([9])) + _option(_END, b"")
                self._target.write(_block(_INTERFACE, struct.pack("<HHI", link, 0, _SNAP) + resolution))
        return self._interfaces[link]

    def end(self, facts: dict[str, Any]) -> None:
        names = (("received", _RECEIVED), ("dropped_by_interface", _BY_INTERFACE), ("dropped", _DROPPED))
        counted = [_option(code, struct.pack("<Q", facts[name])) for name, code in names if name in facts]
        if counted and not self._classic:
            for link in sorted(facts["link_types"])[:1]:
                self._number(link)
            self._target.write(
                _block(_STATISTICS, struct.pack("<III", 0, 0, 0) + b"".join(counted) + _option(_END, b""))
            )

    def facts(self) -> dict[str, Any]:
        """Return nothing: the reader knows all facts."""
        return {}


def _block(kind: int, body: bytes) -> bytes:
    length = len(body) + 12
    return struct.pack("<II", kind, length) + body + struct.pack("<I", length)


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)


def _compressed(plain: IO[bytes], size: int, target: IO[bytes], facts: dict[str, Any]) -> None:
    """Compress like the original, with a checksum only if the original had one."""
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
