"""One host's share of a joined capture, computed independently of the others.

A share is a directory of plain arrays: the frames taken from the recording, sorted by its clock (``blocks``, ``time_ns``,
``length``), and the data for clock offsets (``keys``, ``key_time_ns``, ``key_owner``). It is processed in windows, so that neither
writing nor joining shares needs the memory of a recording.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from analysis.capture.clocks import Sightings
from analysis.capture.tables import tables_of
from analysis.errors import UnreadableCapture
from analysis.kernels import joining as kernel
from analysis.kernels.frames.headers import write_records
from analysis.packets import NO_HOST, NO_TIME, TCP, PacketTable

Bytes = npt.NDArray[np.uint8]
Int64 = npt.NDArray[np.int64]

MOST_SIGHTINGS: Final = 1 << 21
"""Frames of a recording for the clock offset; of more, every second, fourth ... is used, the same at every host."""
WINDOW_BYTES: Final = 1 << 24
FEWEST_BYTES: Final = kernel.FIXED + 4 + 60
"""Shortest frame in a recording."""
NO_OWNER: Final = -1
_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)
_NANOSECONDS: Final = struct.pack("<HHB3xHH", 9, 1, 9, 0, 0)


@dataclass(frozen=True, slots=True)
class Recording:
    """One host's pcapng file, in this machine's byte order, and the host's addresses."""

    host: str
    path: Path
    addresses: frozenset[str]


def write_share(recordings: Sequence[Recording], number: int, directory: Path) -> None:
    """Write the share of ``recordings[number]`` to an empty directory.

    Raises CaptureError and OSError.
    """
    recording = recordings[number]
    owners = {address: n for n, other in enumerate(recordings) for address in other.addresses}
    every = max(max(other.path.stat().st_size for other in recordings) // FEWEST_BYTES // MOST_SIGHTINGS, 0)
    observed = _Observed(number, owners, sample=(1 << every.bit_length()) - 1)
    for table in tables_of(recording.path):
        observed.add(table)
    mapped = _Mapped(recording.path)
    offset, length = _blocks(mapped)
    if len(offset) != observed.packets:
        raise UnreadableCapture(f"{recording.host}: the recording was not written by dumpcap")
    rows, time_ns = _joined(observed.rows), _joined(observed.times)
    order = np.argsort(time_ns, kind="stable")
    time_ns, offset, length = time_ns[order], offset[rows[order]], length[rows[order]]
    time_ns.tofile(directory / "time_ns")
    (directory / "interface").write_bytes(_interface(mapped.data))
    with (directory / "blocks").open("wb") as blocks, (directory / "length").open("wb") as lengths:
        for copied, copied_length in _copies(mapped, offset, length, time_ns, number):
            blocks.write(copied.data)
            lengths.write(copied_length.data)
    keys, key_time_ns, key_owner = observed.sightings()
    keys.tofile(directory / "keys")
    key_time_ns.tofile(directory / "key_time_ns")
    key_owner.tofile(directory / "key_owner")


def read_sightings(directory: Path) -> Sightings:
    """Read the data for the clock offset of a share."""
    return Sightings(
        np.fromfile(directory / "keys", np.uint64),
        np.fromfile(directory / "key_time_ns", np.int64),
        np.fromfile(directory / "key_owner", np.int32),
    )


@dataclass(slots=True)
class _Observed:
    """Data collected from the tables of a recording."""

    number: int
    owners: Mapping[str, int]
    sample: int
    packets: int = 0
    rows: list[Int64] = field(default_factory=list)
    times: list[Int64] = field(default_factory=list)
    marks: list[tuple[npt.NDArray[np.uint64], Int64, npt.NDArray[np.int32]]] = field(default_factory=list)
    owner: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    """Owner of every address so far; the last entry is for addresses without a number."""

    def add(self, table: PacketTable) -> None:
        no_owner = len(self.owners) + 1
        count = max(len(self.owner) - 1, 0)
        if len(table.hosts) >= len(self.owner):
            new = np.full(len(table.hosts) - count + 1, no_owner, np.int32)
            for address, row in table.hosts[count:].numbers_of(self.owners).items():
                new[row] = self.owners[address]
            self.owner = np.concatenate([self.owner[:count], new])

        source, target = (self.owner[np.minimum(column, len(table.hosts))] for column in (table.src, table.dst))
        # Frames of pairs whose first host is this one; the first recording takes those of no host.
        first = np.minimum(source, target)
        taken = np.flatnonzero(np.where(first == no_owner, 0, first) == self.number)
        self.rows.append(taken + self.packets)
        self.times.append(table.time_ns[taken])
        self.packets += len(table)
        self._mark(table, np.where(source == no_owner, NO_OWNER, source).astype(np.int32))

    def _mark(self, table: PacketTable, owner: npt.NDArray[np.int32]) -> None:
        """Hash the headers of each TCP frame, with the same result in every recording."""
        rows = np.flatnonzero(((table.kind & TCP) > 0) & (table.time_ns != NO_TIME) & (table.src != NO_HOST))
        if not len(rows):
            return
        key = np.zeros(len(rows), np.uint64)
        ends = (table.hosts.words(column[rows]) for column in (table.src, table.dst))
        headers = (table.sport, table.dport, table.seq, table.ack, table.payload, table.window, table.tcp_flags)
        for column in (*(half for words in ends for half in words.T), *(column[rows] for column in headers)):
            key = (key ^ column.astype(np.uint64)) * _SPREAD
            key ^= key >> np.uint64(29)
        chosen = (key & np.uint64(self.sample)) == 0
        rows = rows[chosen]
        self.marks.append((key[chosen], table.time_ns[rows], owner[rows]))

    def sightings(self) -> tuple[npt.NDArray[np.uint64], Int64, npt.NDArray[np.int32]]:
        """Return hash, time and owner of frames that occur exactly once."""
        if not self.marks:
            return np.zeros(0, np.uint64), np.zeros(0, np.int64), np.zeros(0, np.int32)
        key, time_ns, owner = (np.concatenate(column) for column in zip(*self.marks, strict=True))
        keys, where, counts = np.unique(key, return_index=True, return_counts=True)
        once = where[counts == 1]
        return keys[counts == 1], time_ns[once], owner[once]


def _joined(parts: list[Int64]) -> Int64:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


class _Mapped:
    """A file in the address space, of which ``forget`` leaves nothing in memory."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.data: Bytes = np.frombuffer(self._map, np.uint8)

    def forget(self) -> None:
        self._map.madvise(mmap.MADV_DONTNEED)


def _blocks(mapped: _Mapped) -> tuple[Int64, Int64]:
    """Return the offsets and lengths of all packet blocks."""
    offsets: list[Int64] = []
    lengths: list[Int64] = []
    position = 0
    while True:
        window = mapped.data[position : position + WINDOW_BYTES]
        offset, end = np.empty(len(window) // kernel.SHORTEST + 1, np.int64), np.zeros(1, np.int64)
        count = kernel.packet_blocks(window, offset, end)
        if not end[0]:
            return _joined(offsets), _joined(lengths)
        offset = offset[:count]
        lengths.append(_words(window)[offset // 4 + 1].astype(np.int64))
        offsets.append(offset + position)
        position += int(end[0])
        mapped.forget()


def _interface(data: Bytes) -> bytes:
    """Return the interface block of the recording, with a resolution of 1 ns."""
    at = int(data[4:8].view("<u4")[0])  # behind the section header
    length = 16 + len(_NANOSECONDS) + 4
    return (
        struct.pack("<II", 1, length)
        + data[at + 8 : at + 10].tobytes()
        + bytes(6)
        + _NANOSECONDS
        + struct.pack("<I", length)
    )


def _copies(
    mapped: _Mapped, offset: Int64, length: Int64, time_ns: Int64, number: int
) -> Iterator[tuple[Bytes, Int64]]:
    """Yield blocks in the requested order with their lengths, some bytes at a time."""
    window = np.cumsum(length) // WINDOW_BYTES
    borders = [0, *(np.flatnonzero(np.diff(window)) + 1).tolist(), len(offset)]
    for begin, end in pairwise(borders):
        some = slice(begin, end)
        yield written_blocks(mapped.data, offset[some], time_ns[some], np.full(end - begin, number))
        mapped.forget()


def _words(data: Bytes) -> npt.NDArray[np.uint32]:
    return data[: len(data) // 4 * 4].view("<u4")


def written_blocks(data: Bytes, offset: Int64, time_ns: Int64, interface: Int64) -> tuple[Bytes, Int64]:
    """Return packet blocks of ``data`` with new interfaces and times, and lengths."""
    words, word = _words(data), offset // 4
    captured, original = words[word + 5], words[word + 6]
    length = kernel.FIXED + 4 + (captured.astype(np.int64) + 3) // 4 * 4
    out = np.empty(int(length.sum()), np.uint8)
    write_records(data, offset + kernel.FIXED, captured, original, time_ns, interface, True, out)
    return out, length
