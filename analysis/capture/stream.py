"""A capture file as a stream of packet tables, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from analysis.capture.decoder import Decoder
from analysis.capture.formats import Block, CaptureFormat, recognise
from analysis.capture.source import open_source
from analysis.errors import UnreadableCapture, UnsupportedCapture
from analysis.kernels.frames import framing
from analysis.kernels.frames import link_layers as layers
from analysis.packets import PacketTable

BUFFER_BYTES: Final = 1 << 20
"""Fits into the processor's cache between reading and decoding."""
MOST_ROWS: Final = 1 << 15
"""Packets of one table: enough to amortise the cost per table, few enough to keep two threads busy."""
_HEADER_BYTES: Final = 24
"""A pcap header; no pcapng section header block is shorter."""
NATIVE_LINK_TYPES: Final = frozenset(
    {
        layers.NULL, layers.ETHERNET, layers.RAW_IP, layers.RAW_IP_BSD, layers.RAW_IP_101, layers.LOOP, layers.LINUX_SLL,
        layers.IPV4_ONLY, layers.IPV6_ONLY, layers.INFINIBAND_IP, layers.INFINIBAND, layers.LINUX_SLL2,
    }
)  # fmt: skip
_NAMES: Final = {
    6: "token ring", 9: "PPP", 10: "FDDI", 50: "PPP", 51: "PPPoE", 100: "ATM", 104: "Cisco HDLC", 105: "IEEE 802.11",
    107: "frame relay", 117: "PFLOG", 119: "IEEE 802.11 with Prism header", 122: "Fibre Channel",
    127: "IEEE 802.11 with radiotap header", 138: "FireWire", 143: "DOCSIS", 163: "IEEE 802.11 with AVS header",
    187: "Bluetooth", 189: "USB", 192: "PPI", 195: "IEEE 802.15.4", 197: "ERF", 201: "Bluetooth", 220: "USB",
    227: "CAN bus", 239: "NFLOG", 242: "IP over InfiniBand", 249: "USB", 251: "Bluetooth", 253: "netlink", 258: "PKTAP",
}  # fmt: skip
"""Frequent link types, by their numbers at tcpdump.org."""


def link_type_name(link: int) -> str:
    """Return the number of a link type with its name, if it is a frequent one."""
    return f"link type {link} ({_NAMES[link]})" if link in _NAMES else f"link type {link}"


class CaptureReader:
    """Reads one capture file, which may still grow.

    ``tables()`` yields the complete packets so far and may be called again after the file has grown; ``finish()`` declares the end,
    so that an incomplete last record counts as truncated.
    Raises UnreadableCapture, and UnsupportedCapture for packets of a link type that only the second decoder reads.
    """

    def __init__(self, path: str | Path, *, buffer_bytes: int = BUFFER_BYTES, most_rows: int = MOST_ROWS) -> None:
        self._path = path
        self._source = open_source(path)
        self._data = np.empty(buffer_bytes, np.uint8)
        self._start = self._end = 0
        self._most_rows = most_rows
        self._format: CaptureFormat | None = None
        self._decoder = Decoder()
        self.damaged = False
        self._unread = 0
        self._undefined = 0
        self._truncated = self._zeros = False
        self.packets = 0

    def __enter__(self) -> CaptureReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._source.close()

    @property
    def progress(self) -> tuple[int, int]:
        """Bytes of the file read so far, bytes of the file."""
        return self._source.position(), self._source.size

    def tables(self) -> Iterator[PacketTable]:
        """Yield tables of at most ``most_rows`` packets, up to the current end."""
        rows_at_most = max(self._most_rows >> 3, 1)  # the second thread waits for the first table, which is short
        while True:
            block = Block(rows_at_most)
            rows_at_most = min(2 * rows_at_most, self._most_rows)
            rows, more = self._fill_block(block)
            if rows:
                table = self._decoder.table(block, rows)
                table.source.update(first_packet=self.packets)
                self.packets += rows
                yield table
            if not more:
                return

    def _fill_block(self, block: Block) -> tuple[int, bool]:
        """Return the rows decoded into the block, and True if the file may have more."""
        rows = 0
        while rows < block.capacity:
            capture_format = self._format or self._read_header()
            if capture_format is None or self.damaged:
                return rows, False
            new, status = self._frame(capture_format, block, rows)
            self._decoder.decode(self._data, block, rows, rows + new)
            rows += new
            if status == framing.DAMAGED:
                self.damaged = True
            elif status == framing.MORE and not self._fill():
                return rows, False
        return rows, True

    def _frame(self, capture_format: CaptureFormat, block: Block, first: int) -> tuple[int, int]:
        new, self._start, status = capture_format.frame(self._data, self._start, self._end, block, first)
        self._look_at_links(capture_format, block, first, first + new)
        if capture_format.has_interfaces:
            self._undefined += int(np.count_nonzero(block.links(first, first + new) == framing.NO_LINK))
        return new, status

    def _read_header(self) -> CaptureFormat | None:
        """Return the format; None while the file is too short."""
        if self._end < _HEADER_BYTES:
            self._fill()
        if self._end < _HEADER_BYTES:
            return None
        return self._recognise()

    def _recognise(self) -> CaptureFormat:
        try:
            self._format = recognise(self._data.data[: self._end])
        except UnreadableCapture as error:
            why = self._source.problem or error
            raise UnreadableCapture(f"{self._path}: {why}") from error
        self._start = self._format.header_bytes
        return self._format

    def _look_at_links(self, capture_format: CaptureFormat, block: Block, first: int, last: int) -> None:
        """Refuse packets of unsupported link types, but not interfaces without packets."""
        if capture_format.link_types <= NATIVE_LINK_TYPES:
            return
        used = set(np.unique(block.links(first, last)).tolist()) - {framing.NO_LINK}
        if unsupported := used - NATIVE_LINK_TYPES:
            name = link_type_name(min(unsupported))
            raise UnsupportedCapture(f"{self._path}: unsupported {name}: use --decoder pyshark")

    def _fill(self) -> bool:
        """Append to the unused bytes of the buffer; False at the current end."""
        unused = self._end - self._start
        if self._start:
            self._data[:unused] = self._data[self._start : self._end].copy()
            self._start, self._end = 0, unused
        if self._end == len(self._data):  # one record fills the buffer; the formats bound its length
            self._data = np.concatenate([self._data, np.empty_like(self._data)])
        count = 0
        while self._end < len(self._data):
            piece = self._source.readinto(self._data.data[self._end :])
            if piece == 0:
                break
            self._end += piece
            count += piece
        return count > 0

    def finish(self) -> None:
        """Count the bytes that were not read: all after damage, else an incomplete record."""
        if self._format is None:
            self._recognise()
        self._unread = self._end - self._start
        self._truncated = not self.damaged and (self._unread > 0 or self._source.problem is not None)
        self._zeros = self._unread > 0 and not self._data[self._start : self._end].any()
        while self.damaged and (piece := self._source.readinto(self._data.data)):
            self._unread += piece
            self._zeros = self._zeros and not self._data[:piece].any()

    def facts(self) -> dict[str, Any]:
        """Return the facts of the file: see PacketTable.source."""
        capture_format = self._format or self._recognise()
        problem, unverified = self._source.problem, self._source.unverified
        notes = [text for text in (problem, unverified) if text]
        if capture_format.damage:
            notes.append(f"damaged behind packet {self.packets}: {capture_format.damage}")
        return {
            **capture_format.facts(),
            **self._decoder.facts(),
            "compression": self._source.compression,
            "file_bytes": self._source.size,
            "link_types": sorted(capture_format.link_types),
            "packets": self.packets,
            "truncated_tail": self._truncated,
            "stream_problem": problem,
            "unverified": unverified,
            "damaged": self.damaged,
            "unread_bytes": self._unread,
            "unread_zeros": self._zeros,
            "undefined_interface": self._undefined,
            "odd_stamps": capture_format.odd_stamps,
            "notes": notes,
        }


def stream(
    path: str | Path,
    *,
    facts: dict[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[PacketTable]:
    """Yield all packets of ``path`` in tables.

    ``facts`` is filled at the end; ``progress`` gets (bytes read, bytes).
    """
    with CaptureReader(path) as reader:
        for table in reader.tables():
            if progress:
                progress(*reader.progress)
            yield table
        reader.finish()
        if facts is not None:
            facts.update(reader.facts())
