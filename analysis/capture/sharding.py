"""What one host's recording gives to the joined capture: worked out without the others, so that several are done at once.

A share is a directory: the frames that are taken of the recording in the order of its clock (``blocks``, ``time_ns``,
``length``), and what its clock is compared by (``keys``, ``key_time_ns``, ``key_owner``), as plain arrays. It is read in
windows, so that neither making one nor joining many needs the memory of a recording.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt

from analysis.capture.clocks import Sightings
from analysis.capture.tables import tables_of
from analysis.errors import UnreadableCapture
from analysis.kernels import joining as kernel
from analysis.kernels.frames.headers import write_records
from analysis.packets import NO_HOST, NO_TIME, TCP, PacketTable

Int64 = npt.NDArray[np.int64]

MOST_SIGHTINGS: Final = 1 << 21
"""Frames of a recording that tell of its clock; of more every second, fourth ... one is taken, the same ones of every host."""
WINDOW_BYTES: Final = 1 << 24
FEWEST_BYTES: Final = kernel.FIXED + 4 + 60
"""Of a frame in a recording."""
NOBODY: Final = -1
_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)
_NANOSECONDS: Final = struct.pack("<HHB3xHH", 9, 1, 9, 0, 0)


@dataclass(frozen=True, slots=True)
class Recording:
    """What one host recorded: a pcapng file of this machine's byte order, and the addresses of the host."""

    host: str
    path: Path
    addresses: frozenset[str]


def write_share(recordings: Sequence[Recording], number: int, place: Path) -> None:
    """Write what ``recordings[number]`` gives into the empty directory ``place``. Raises CaptureError and OSError."""
    recording = recordings[number]
    owners = {address: n for n, each in enumerate(recordings) for address in each.addresses}
    every = max(max(each.path.stat().st_size for each in recordings) // FEWEST_BYTES // MOST_SIGHTINGS, 0)
    seen = _Seen(number, owners, sample=(1 << every.bit_length()) - 1)
    for table in tables_of(recording.path):
        seen.add(table)
    offset = _block_offsets(recording)
    if len(offset) != seen.packets:
        raise UnreadableCapture(f"{recording.host}: the recording holds other blocks than packets of dumpcap")
    rows, time_ns = _joined(seen.rows), _joined(seen.times)
    order = np.argsort(time_ns, kind="stable")
    time_ns, offset = time_ns[order], offset[rows[order]]
    time_ns.tofile(place / "time_ns")
    with (
        recording.path.open("rb") as source,
        (place / "blocks").open("wb") as blocks,
        (place / "length").open("wb") as lengths,
    ):
        (place / "interface").write_bytes(_interface(source))
        for copied, length in _copies(source, offset, time_ns, number):
            blocks.write(copied.data)
            lengths.write(length.data)
    keys, key_time_ns, key_owner = seen.sightings()
    keys.tofile(place / "keys")
    key_time_ns.tofile(place / "key_time_ns")
    key_owner.tofile(place / "key_owner")


def read_sightings(place: Path) -> Sightings:
    """What the clock of a share is compared by."""
    return Sightings(
        np.fromfile(place / "keys", np.uint64),
        np.fromfile(place / "key_time_ns", np.int64),
        np.fromfile(place / "key_owner", np.int32),
    )


@dataclass(slots=True)
class _Seen:
    """What is kept of a recording's tables as they go by."""

    number: int
    owners: Mapping[str, int]
    sample: int
    packets: int = 0
    rows: list[Int64] = field(default_factory=list)
    times: list[Int64] = field(default_factory=list)
    marks: list[tuple[npt.NDArray[np.uint64], Int64, npt.NDArray[np.int32]]] = field(default_factory=list)
    owner: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    """Of every address so far; the last one is of those without a number."""

    def add(self, table: PacketTable) -> None:
        nobody = len(self.owners) + 1
        known = max(len(self.owner) - 1, 0)
        if len(table.hosts) >= len(self.owner):
            new = np.full(len(table.hosts) - known + 1, nobody, np.int32)
            for address, place in table.hosts[known:].numbers_of(self.owners).items():
                new[place] = self.owners[address]
            self.owner = np.concatenate([self.owner[:known], new])

        source, target = (self.owner[np.minimum(column, len(table.hosts))] for column in (table.src, table.dst))
        # Frames of pairs of which this host is the first; what belongs to no host is the first recording's.
        first = np.minimum(source, target)
        taken = np.flatnonzero(np.where(first == nobody, 0, first) == self.number)
        self.rows.append(taken + self.packets)
        self.times.append(table.time_ns[taken])
        self.packets += len(table)
        self._mark(table, np.where(source == nobody, NOBODY, source).astype(np.int32))

    def _mark(self, table: PacketTable, owner: npt.NDArray[np.int32]) -> None:
        """A hash of the headers of each TCP frame, the same in every recording of it."""
        rows = np.flatnonzero(((table.kind & TCP) > 0) & (table.time_ns != NO_TIME) & (table.src != NO_HOST))
        if not len(rows):
            return
        key = np.zeros(len(rows), np.uint64)
        ends = (table.hosts.words(column[rows]) for column in (table.src, table.dst))
        told = (table.sport, table.dport, table.seq, table.ack, table.payload, table.window, table.tcp_flags)
        for column in (*(half for words in ends for half in words.T), *(each[rows] for each in told)):
            key = (key ^ column.astype(np.uint64)) * _SPREAD
            key ^= key >> np.uint64(29)
        chosen = (key & np.uint64(self.sample)) == 0
        rows = rows[chosen]
        self.marks.append((key[chosen], table.time_ns[rows], owner[rows]))

    def sightings(self) -> tuple[npt.NDArray[np.uint64], Int64, npt.NDArray[np.int32]]:
        """(hash, time, whose) of frames that the recording holds exactly once; what was sent again is no sure match."""
        if not self.marks:
            return np.zeros(0, np.uint64), np.zeros(0, np.int64), np.zeros(0, np.int32)
        key, time_ns, owner = (np.concatenate(column) for column in zip(*self.marks, strict=True))
        keys, where, counts = np.unique(key, return_index=True, return_counts=True)
        once = where[counts == 1]
        return keys[counts == 1], time_ns[once], owner[once]


def _joined(parts: list[Int64]) -> Int64:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _block_offsets(recording: Recording) -> Int64:
    """Where each packet's block begins in the file."""
    found: list[Int64] = []
    position = 0
    with recording.path.open("rb") as source:
        while True:
            source.seek(position)
            data = np.frombuffer(source.read(WINDOW_BYTES), np.uint8)
            offset, end = np.empty(len(data) // kernel.SHORTEST + 1, np.int64), np.zeros(1, np.int64)
            count = kernel.packet_blocks(data, offset, end)
            if not end[0]:
                return _joined(found)
            found.append(offset[:count] + position)
            position += int(end[0])


def _interface(source: BinaryIO) -> bytes:
    """The description of its interface, stamped in ns."""
    at = int.from_bytes(source.read(8)[4:8], "little")  # behind the section header
    source.seek(at + 8)
    length = 16 + len(_NANOSECONDS) + 4
    return struct.pack("<II", 1, length) + source.read(2) + bytes(6) + _NANOSECONDS + struct.pack("<I", length)


def _copies(source: BinaryIO, offset: Int64, time_ns: Int64, number: int) -> Iterator[tuple[npt.NDArray[Any], Int64]]:
    """Yield blocks in the requested order with their lengths, some at a time."""
    some = WINDOW_BYTES // 128
    for begin in range(0, len(offset), some):
        at = offset[begin : begin + some]
        start = int(at.min())
        source.seek(int(at.max()) + 4)
        end = int(at.max()) + int.from_bytes(source.read(4), "little")
        source.seek(start)
        data = np.frombuffer(source.read(end - start), np.uint8)
        yield written_blocks(data, at - start, time_ns[begin : begin + some], np.full(len(at), number))


def written_blocks(
    data: npt.NDArray[np.uint8], offset: Int64, time_ns: Int64, interface: Int64
) -> tuple[npt.NDArray[np.uint8], Int64]:
    """Return enhanced packet blocks of ``data`` with other interfaces and times, without their options, and their lengths."""
    words, word = data.view("<u4"), offset // 4
    captured, original = words[word + 5], words[word + 6]
    length = kernel.FIXED + 4 + (captured.astype(np.int64) + 3) // 4 * 4
    out = np.empty(int(length.sum()), np.uint8)
    write_records(data, offset + kernel.FIXED, captured, original, time_ns, interface, True, out)
    return out, length
