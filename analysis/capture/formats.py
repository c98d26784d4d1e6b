"""The two capture formats: their headers; framing kernels read the records.

Sources: draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng. Pure: bytes in, offsets out.
"""

from __future__ import annotations

import struct
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from analysis.errors import UnreadableCapture
from analysis.kernels.decode import Columns
from analysis.kernels.frames import framing
from analysis.packets import COLUMNS

USUAL_LONGEST_RECORD: Final = 262_144
"""libpcap's own limit for files that do not announce a larger snap length."""
LONGEST_RECORD: Final = 1 << 24
"""No network sends a frame of 16 MiB; a longer record is damage."""
MOST_INTERFACES: Final = 65_536
MOST_CONTROL_BYTES: Final = 1 << 25
"""Of section, interface and statistics blocks: a file joined of 100 000 others has fewer, and each block costs time."""

Buffer = npt.NDArray[np.uint8]

_PCAP_TIMES: Final = {0xA1B2C3D4: (1000, "us"), 0xA1B23C4D: (1, "ns")}
"""Nanoseconds of a fraction and their name, by the magic number."""
_PCAP_RELATIVES: Final = frozenset({0xA1B2CD34, 0x1C0001AB, 0x1C0001AC})
"""Magic numbers of Kuznetzov's and IXIA's kinds."""
_CONVERT: Final = "use --decoder pyshark, or convert the file with editcap -F pcap"
_PCAPNG_MAGIC: Final = bytes.fromhex("0a0d0d0a")
_BYTE_ORDER_MAGIC: Final = 0x1A2B3C4D
_COUNTERS: Final = {4: "received", 5: "dropped_by_interface", 7: "dropped"}
"""Options of interface statistics blocks."""
_DTYPES: Final = Columns(offset=np.int64, link=np.int64, **COLUMNS)


class Block:
    """Room for ``capacity`` packets, filled by framing and then by decoding."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._columns = Columns(*(np.empty(capacity, dtype) for dtype in _DTYPES))

    def rows(self, first: int, last: int) -> Columns:
        """Return all columns of rows ``first`` to ``last``."""
        rows = slice(first, last)
        return Columns(*(column[rows] for column in self._columns))

    def framing_columns(self, first: int) -> tuple[npt.NDArray[Any], ...]:
        """Return the columns that a framing kernel writes, from row ``first`` on."""
        columns = self._columns
        written = columns.time_ns, columns.orig_len, columns.cap_len, columns.offset, columns.link
        return tuple(column[first:] for column in written)

    def links(self, first: int, last: int) -> npt.NDArray[np.int64]:
        """Return the link types of rows ``first`` to ``last``."""
        links: npt.NDArray[np.int64] = self._columns.link[first:last]
        return links

    def columns(self, rows: int) -> dict[str, Any]:
        """Return the columns of a PacketTable for the first ``rows`` packets."""
        return dict(zip(Columns._fields[2:], self.rows(0, rows)[2:], strict=True))


class PcapFormat:
    """The pcap format, version 2.4: one header, one link type, one snap length."""

    has_interfaces: Final = False
    header_bytes: Final = 24

    def __init__(self, header: bytes) -> None:
        if len(header) < self.header_bytes:
            raise UnreadableCapture("the file ends inside its pcap header")
        self._big_endian = int.from_bytes(header[:4], "big") in _PCAP_TIMES
        order = ">" if self._big_endian else "<"
        magic, *version, _, _, self.snap_length, link = struct.unpack(f"{order}IHHiIII", header[: self.header_bytes])
        if version != [2, 4]:
            raise UnreadableCapture(f"pcap files of version {version[0]}.{version[1]} are not read: {_CONVERT}")
        ns_per_fraction, self._time_unit = _PCAP_TIMES[magic]
        link &= 0xFFFF  # flags are above bit 16
        self.link_types = {link}
        self.longest = max(USUAL_LONGEST_RECORD, min(self.snap_length, LONGEST_RECORD))
        self.damage: str | None = None
        self.odd_stamps = 0
        self._records = (self._big_endian, ns_per_fraction, self.longest, link)

    def frame(self, data: Buffer, start: int, end: int, block: Block, first: int) -> tuple[int, int, int]:
        """Frame ``data[start:end]`` into rows from ``first``: (rows, end, status)."""
        n, at, status, odd_stamps = framing.frame_pcap(
            data.ctypes.data, start, end, *self._records, *block.framing_columns(first)
        )
        self.odd_stamps += odd_stamps
        if status == framing.DAMAGED:
            is_empty = not data[at : at + 16].any()
            self.damage = (
                "no record, but zeros" if is_empty else "a record header claims more bytes than any packet has"
            )
        return n, at, status

    def facts(self) -> dict[str, Any]:
        return {
            "format": "pcap",
            "byte_order": "big" if self._big_endian else "little",
            "time_resolution": self._time_unit,
            "snap_length": self.snap_length,
        }


class PcapngFormat:
    """The pcapng format: sections, each with its byte order and its interfaces."""

    header_bytes: Final = 0
    """A section header is read like other blocks."""
    has_interfaces: Final = True
    """Packets name theirs, which may be undefined."""

    def __init__(self) -> None:
        self.big_endian = False
        self.longest = LONGEST_RECORD
        self.link_types: set[int] = set()
        self.sections = 0
        self.snap_length = 0
        self.damage: str | None = None
        self.odd_stamps = 0
        self._interfaces = np.zeros((0, 5), np.int64)
        self._count = 0
        self._control_bytes = 0
        self._statistics: dict[tuple[int, int], dict[int, int]] = {}
        self._resolutions: set[str] = set()

    def frame(self, data: Buffer, start: int, end: int, block: Block, first: int) -> tuple[int, int, int]:
        """Frame ``data[start:end]`` into rows from ``first``: (rows, end, status)."""
        n, at = 0, start
        while True:
            rows, at, status, odd = framing.frame_pcapng(
                data.ctypes.data,
                at,
                end,
                self.big_endian,
                self.longest,
                self._interfaces[: self._count],
                *block.framing_columns(first + n),
            )
            n += rows
            self.odd_stamps += odd
            if status != framing.CONTROL:
                if status == framing.DAMAGED:
                    self.damage = self.damage or "a block contradicts its own length"
                return n, at, status
            length = self._control(data[at:end])
            if length <= 0:
                return n, at, framing.MORE if length == 0 else framing.DAMAGED
            at += length

    def _control(self, data: Buffer) -> int:
        """Read a control block: its length, 0 if incomplete, -1 if damaged."""
        if len(data) < 12:
            return 0
        head = data[:12].tobytes()
        big_endian = self.big_endian
        if head[:4] == _PCAPNG_MAGIC:
            big_endian = head[8:12] == _BYTE_ORDER_MAGIC.to_bytes(4, "big")
            if not big_endian and head[8:12] != _BYTE_ORDER_MAGIC.to_bytes(4, "little"):
                return self._damaged("a section header without a byte-order mark")
        order: Any = "big" if big_endian else "little"
        length = int.from_bytes(head[4:8], order)
        if length < 12 or length % 4 or length > LONGEST_RECORD:
            return self._damaged("a block contradicts its own length")
        if len(data) < length:
            return 0
        self._control_bytes += length
        if self._control_bytes > MOST_CONTROL_BYTES:
            return self._damaged(f"more than {MOST_CONTROL_BYTES} bytes of blocks that are no packets")
        block = data[:length].tobytes()
        if block[-4:] != head[4:8]:
            return self._damaged("a block contradicts its own length")
        self.big_endian = big_endian
        kind = int.from_bytes(head[:4], order)
        if kind == framing.SECTION_HEADER:
            if length < 28 or not _is_known_section(block, order):
                return self._damaged("a section header of an unknown version")
            self.sections += 1
            self._count = 0
            return length
        return self._interface(block, order, length) if kind == framing.INTERFACE else self._statistic(block, order)

    def _damaged(self, why: str) -> int:
        self.damage = why
        return -1

    def _interface(self, block: bytes, order: Any, length: int) -> int:
        if length < 20 or self._count >= MOST_INTERFACES:
            return self._damaged("an interface block that is too short, or too many of them")
        link = int.from_bytes(block[8:10], order)
        snap = int.from_bytes(block[12:16], order)
        options = _options(block[16:-4], order)
        resolution = options[9][0] if options.get(9) else 6
        offset_s = int.from_bytes(options[14][:8], order, signed=True) if len(options.get(14, b"")) >= 8 else 0
        exponent = resolution & 0x7F
        if exponent > (63 if resolution & 0x80 else 19):
            return self._damaged("an interface block with an impossible time resolution")
        if resolution & 0x80:
            rule, value = framing.TICKS_BINARY, exponent
        elif exponent <= 9:
            rule, value = framing.TICKS_TIMES, 10 ** (9 - exponent)
        else:
            rule, value = framing.TICKS_DIVIDED, 10 ** (exponent - 9)
        limit = framing.TIME_LIMIT
        row = [link, snap, rule, value, max(min(offset_s * 10**9, limit), -limit)]
        if self._count == len(self._interfaces):
            grown = np.zeros((max(4, 2 * self._count), 5), np.int64)
            grown[: self._count] = self._interfaces
            self._interfaces = grown
        self._interfaces[self._count] = row
        self._count += 1
        self.link_types.add(link)
        self.snap_length = max(self.snap_length, snap)
        self._resolutions.add(f"{2 if resolution & 0x80 else 10}^-{exponent} s")
        return length

    def _statistic(self, block: bytes, order: Any) -> int:
        if len(block) < 24:
            return self._damaged("a statistics block that is too short")
        number = int.from_bytes(block[8:12], order)
        counters = {
            code: int.from_bytes(value[:8], order)
            for code, value in _options(block[20:-4], order).items()
            if code in _COUNTERS and len(value) >= 8
        }
        if len(self._statistics) < MOST_INTERFACES:
            self._statistics[self.sections, number] = counters  # the last block of an interface holds the totals
        return len(block)

    def facts(self) -> dict[str, Any]:
        return {
            "format": "pcapng",
            "byte_order": "big" if self.big_endian else "little",
            "time_resolution": ", ".join(sorted(self._resolutions)),
            "snap_length": self.snap_length,
            "sections": self.sections,
            **self._drop_counters(),
        }

    def _drop_counters(self) -> dict[str, int]:
        totals: dict[str, int] = {}
        for counters in self._statistics.values():
            for code, count in counters.items():
                totals[_COUNTERS[code]] = totals.get(_COUNTERS[code], 0) + count
        return totals


def _options(data: bytes, order: Any) -> dict[int, bytes]:
    """Return pcapng options, the last of each code; incomplete ones are left out."""
    options: dict[int, bytes] = {}
    at = 0
    while at + 4 <= len(data):
        code = int.from_bytes(data[at : at + 2], order)
        length = int.from_bytes(data[at + 2 : at + 4], order)
        if code == 0 or at + 4 + length > len(data):
            break
        options[code] = data[at + 4 : at + 4 + length]
        at += 4 + (length + 3) // 4 * 4
    return options


def _is_known_section(block: bytes, order: Any) -> bool:
    """Accept 1.0, and 1.2, which has the same meaning."""
    return (int.from_bytes(block[12:14], order), int.from_bytes(block[14:16], order)) in ((1, 0), (1, 2))


CaptureFormat = PcapFormat | PcapngFormat


def recognise(data: memoryview) -> CaptureFormat:
    """Return the format of a file by its first bytes, 24 if it has them.

    Raises UnreadableCapture.
    """
    header = bytes(data[:24])
    if header[:4] == _PCAPNG_MAGIC:
        order: Any = "big" if header[8:12] == _BYTE_ORDER_MAGIC.to_bytes(4, "big") else "little"
        if len(header) >= 16 and not _is_known_section(header, order):
            major, minor = (int.from_bytes(header[at : at + 2], order) for at in (12, 14))
            raise UnreadableCapture(f"pcapng files of version {major}.{minor} are not supported")
        return PcapngFormat()
    magics = {int.from_bytes(header[:4], "little"), int.from_bytes(header[:4], "big")}
    if magics & _PCAP_TIMES.keys():
        return PcapFormat(header)
    if magics & _PCAP_RELATIVES:
        raise UnreadableCapture(f"this relative of pcap (magic number {header[:4].hex()}) is not read: {_CONVERT}")
    raise UnreadableCapture("the file is neither pcap nor pcapng" if header else "the file is empty")
