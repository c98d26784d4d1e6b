"""The recordings of several hosts as one capture in which every frame is counted once.

A frame between two hosts stands in both of their recordings. All frames of a pair are taken from the recording of one of them,
the first in order: so a connection keeps the times of one clock, and its round trips are those that this host saw. Stamps of
other hosts are moved by what their clocks are apart, which orders connections among each other.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import zstandard

from analysis.capture.clocks import Offset, offset_between
from analysis.capture.tables import read_capture
from analysis.errors import UnreadableCapture
from analysis.kernels import joining as kernel
from analysis.packets import NO_HOST, PacketTable

Int64 = npt.NDArray[np.int64]

MOST_BYTES: Final = 1 << 30
"""Of a joined capture: it is put together in memory."""
CHUNK_BYTES: Final = 1 << 22
_SECTION: Final = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
_NANOSECONDS: Final = struct.pack("<HHB3xHH", 9, 1, 9, 0, 0)


@dataclass(frozen=True, slots=True)
class Recording:
    """What one host recorded: a pcapng file of this machine's byte order, and the addresses of the host."""

    host: str
    path: Path
    addresses: frozenset[str]


@dataclass(frozen=True, slots=True)
class Joined:
    """What came of it. ``clocks``: by host how far its clock is from the first's, where frames tell."""

    packets: int
    hosts: tuple[str, ...]
    clocks: dict[str, Offset] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, in seconds."""
        told = {
            host: {
                "offset_s": offset.ns / 1e9,
                "unsure_s": offset.unsure_ns / 1e9,
                "change_s": offset.change_ns / 1e9,
            }
            for host, offset in self.clocks.items()
        }
        return {"hosts": list(self.hosts), "packets": self.packets, "clocks": told}


def join(recordings: Sequence[Recording], target: Path) -> Joined:
    """Write one capture of ``recordings`` (zstd-compressed pcapng). Raises CaptureError, also where it would be too large."""
    if sum(recording.path.stat().st_size for recording in recordings) > 2 * MOST_BYTES:
        raise _too_large(len(recordings))
    tables = [read_capture(recording.path) for recording in recordings]
    owners = {address: n for n, recording in enumerate(recordings) for address in recording.addresses}
    clocks = _clocks(recordings, tables)
    parts = [
        _Part.of(number, recording, table, owners, clocks.get(recording.host))
        for number, (recording, table) in enumerate(zip(recordings, tables, strict=True))
    ]
    if sum(int(part.length.sum()) for part in parts) > MOST_BYTES:
        raise _too_large(len(parts))
    _write(parts, target)
    packets = sum(len(part.offset) for part in parts)
    return Joined(packets, tuple(recording.host for recording in recordings), clocks)


def _too_large(hosts: int) -> UnreadableCapture:
    return UnreadableCapture(f"the recordings of {hosts} hosts are too large to be joined")


@dataclass(frozen=True, slots=True)
class _Part:
    """What is taken of one recording."""

    number: int
    data: npt.NDArray[np.uint8]
    offset: Int64
    time_ns: Int64
    length: Int64

    @classmethod
    def of(
        cls, number: int, recording: Recording, table: PacketTable, owners: dict[str, int], clock: Offset | None
    ) -> _Part:
        data = np.fromfile(recording.path, np.uint8)
        offset = np.empty(len(table), np.int64)
        if kernel.packet_blocks(data, offset) != len(table):
            raise UnreadableCapture(f"{recording.host}: the recording holds other blocks than packets of dumpcap")
        taken = np.flatnonzero(_taken(number, table, owners))
        times = table.time_ns[taken]
        length = np.empty(len(taken), np.int64)
        kernel.copied_lengths(data, offset[taken], length)
        return cls(number, data, offset[taken], times if clock is None else clock.corrected(times), length)

    @property
    def interface(self) -> bytes:
        """The description of its interface, stamped in ns."""
        at = int.from_bytes(self.data[4:8].tobytes(), "little")  # behind the section header
        link = self.data[at + 8 : at + 10].tobytes()
        length = 16 + len(_NANOSECONDS) + 4
        return struct.pack("<II", 1, length) + link + bytes(6) + _NANOSECONDS + struct.pack("<I", length)


def _taken(number: int, table: PacketTable, owners: dict[str, int]) -> npt.NDArray[np.bool_]:
    """Frames of pairs of which this host is the first; what belongs to no host is the first recording's."""
    nobody = len(owners) + 1
    owner = np.array([*(owners.get(host, nobody) for host in table.hosts), nobody], np.int64)

    def of(column: npt.NDArray[np.uint16]) -> Int64:
        return owner[np.where(column == NO_HOST, len(table.hosts), column)]

    first = np.minimum(of(table.src), of(table.dst))
    taken: npt.NDArray[np.bool_] = np.where(first == nobody, 0, first) == number
    return taken


def _clocks(recordings: Sequence[Recording], tables: Sequence[PacketTable]) -> dict[str, Offset]:
    """Of every host against the first, directly where frames went between them, else by way of a host that has one."""
    known: dict[int, Offset] = {}
    for number in range(1, len(recordings)):
        direct = offset_between(tables[0], tables[number], sorted(recordings[0].addresses))
        if direct is not None:
            known[number] = direct
    for number in range(1, len(recordings)):
        for middle in [] if number in known else sorted(known, key=lambda other: known[other].unsure_ns):
            step = offset_between(tables[middle], tables[number], sorted(recordings[middle].addresses))
            if step is not None:
                known[number] = _both(known[middle], step)
                break
    return {recordings[number].host: known[number] for number in sorted(known)}


def _both(first: Offset, second: Offset) -> Offset:
    return Offset(
        ns=first.ns + second.ns + first.per_ns * (second.at_ns - first.ns - first.at_ns),
        at_ns=second.at_ns - first.ns,
        per_ns=first.per_ns + second.per_ns,
        unsure_ns=first.unsure_ns + second.unsure_ns,
        change_ns=first.change_ns + second.change_ns,
    )


def _write(parts: Sequence[_Part], target: Path) -> None:
    lengths = np.concatenate([part.length for part in parts])
    order = np.argsort(np.concatenate([part.time_ns for part in parts]), kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.cumsum(lengths[order]) - lengths[order]
    out = np.empty(int(lengths.sum()), np.uint8)
    done = 0
    for part in parts:
        where = place[done : done + len(part.offset)]
        kernel.copy_blocks(part.data, part.offset, part.time_ns, part.number, where, out)
        done += len(part.offset)
    unfinished = target.with_name(target.name + ".part")
    with unfinished.open("wb") as stream, zstandard.ZstdCompressor(level=1).stream_writer(stream) as packed:
        packed.write(_SECTION + b"".join(part.interface for part in parts))
        for start in range(0, len(out), CHUNK_BYTES):
            packed.write(out[start : start + CHUNK_BYTES].data)
    unfinished.replace(target)
