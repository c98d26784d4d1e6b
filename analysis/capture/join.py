"""The recordings of several hosts as one capture in which every frame is counted once.

A frame between two hosts stands in both of their recordings. All frames of a pair are taken from the recording of one of them,
the first in order: so a connection keeps the times of one clock, and its round trips are those that this host saw. Stamps of
other hosts are moved by what their clocks are apart, which orders connections among each other.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import zstandard

from analysis.capture.clocks import Offset, offset_between
from analysis.capture.sharding import Recording, read_sightings, write_share, written_blocks
from analysis.errors import UnreadableCapture

Int64 = npt.NDArray[np.int64]

MOST_BYTES: Final = 8 << 30
"""Of a joined capture before it is compressed: it lies on the disk besides the recordings until it is written."""
WINDOW_PACKETS: Final = 1 << 19
"""So many of all shares are put in order at a time."""
_SECTION: Final = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)


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
    require_size(recordings)
    with tempfile.TemporaryDirectory(dir=target.parent) as directory:
        places = [Path(directory, str(number)) for number in range(len(recordings))]
        for number, place in enumerate(places):
            place.mkdir()
            write_share(recordings, number, place)
        return join_shares([recording.host for recording in recordings], places, target)


def require_size(recordings: Sequence[Recording]) -> None:
    """Raise UnreadableCapture for more than can be joined."""
    if sum(recording.path.stat().st_size for recording in recordings) > 2 * MOST_BYTES:
        raise _too_large(len(recordings))


def join_shares(hosts: Sequence[str], places: Sequence[Path], target: Path) -> Joined:
    """Write one capture of the shares in ``places``, in memory that neither their size nor their number bounds. Raises CaptureError."""
    if sum((place / "blocks").stat().st_size for place in places) > MOST_BYTES:
        raise _too_large(len(places))
    clocks = _clocks(places)
    sources = [_Source(number, place, clocks.get(number)) for number, place in enumerate(places)]
    unfinished = target.with_name(target.name + ".part")
    with unfinished.open("wb") as stream, zstandard.ZstdCompressor(level=1).stream_writer(stream) as packed:
        packed.write(_SECTION + b"".join((place / "interface").read_bytes() for place in places))
        for blocks in _merged(sources):
            packed.write(blocks.data)
    unfinished.replace(target)
    packets = sum(source.packets for source in sources)
    return Joined(packets, tuple(hosts), {hosts[number]: clocks[number] for number in sorted(clocks)})


def _too_large(hosts: int) -> UnreadableCapture:
    return UnreadableCapture(f"the recordings of {hosts} hosts are too large to be joined")


def _clocks(places: Sequence[Path]) -> dict[int, Offset]:
    """Of every host against the first, directly where frames went between them, else by way of a host that has one."""
    known: dict[int, Offset] = {}
    first = read_sightings(places[0])
    for number in range(1, len(places)):
        direct = offset_between(first, read_sightings(places[number]), 0)
        if direct is not None:
            known[number] = direct
    for number in range(1, len(places)):
        for middle in [] if number in known else sorted(known, key=lambda other: known[other].unsure_ns):
            step = offset_between(read_sightings(places[middle]), read_sightings(places[number]), middle)
            if step is not None:
                known[number] = _both(known[middle], step)
                break
    return known


def _both(first: Offset, second: Offset) -> Offset:
    return Offset(
        ns=first.ns + second.ns + first.per_ns * (second.at_ns - first.ns - first.at_ns),
        at_ns=second.at_ns - first.ns,
        per_ns=first.per_ns + second.per_ns,
        unsure_ns=first.unsure_ns + second.unsure_ns,
        change_ns=first.change_ns + second.change_ns,
    )


class _Source:
    """A share that is read from its start to its end."""

    def __init__(self, number: int, place: Path, clock: Offset | None) -> None:
        self.number = number
        self._place = place
        self._clock = clock
        self.packets = (place / "time_ns").stat().st_size // 8
        self._next_packet = self._next_byte = 0
        self.time_ns = self._length = np.zeros(0, np.int64)

    @property
    def has_more(self) -> bool:
        """Whether packets are left behind those of ``time_ns``."""
        return self._next_packet < self.packets

    def fill(self, some: int) -> None:
        """Have the times of the next packets ready, once those before are taken."""
        if len(self.time_ns) or not self.has_more:
            return
        at = 8 * self._next_packet
        times = np.fromfile(self._place / "time_ns", np.int64, some, offset=at)
        self._length = np.fromfile(self._place / "length", np.int64, some, offset=at)
        # A clock that was set by seconds is followed so steeply that frames would change places.
        self.time_ns = times if self._clock is None else np.maximum.accumulate(self._clock.corrected(times))
        self._next_packet += len(times)

    def take(self, count: int) -> tuple[Int64, Int64, npt.NDArray[np.uint8]]:
        """(times, lengths, blocks) of the next packets."""
        times, lengths = self.time_ns[:count], self._length[:count]
        size = int(lengths.sum())
        blocks = np.fromfile(self._place / "blocks", np.uint8, size, offset=self._next_byte)
        self._next_byte += size
        self.time_ns, self._length = self.time_ns[count:], self._length[count:]
        return times, lengths, blocks


def _merged(sources: Sequence[_Source]) -> Iterator[npt.NDArray[np.uint8]]:
    """Blocks of all shares in the order of their times; of equal times the earlier share's first."""
    some = max(WINDOW_PACKETS // len(sources), 256)
    while True:
        for source in sources:
            source.fill(some)
        if not any(len(source.time_ns) for source in sources):
            return
        # What is known up to here: a share that goes on may have anything behind the last packet that is read of it.
        ends = [source.time_ns[-1] for source in sources if source.has_more]
        counts = [
            int(np.searchsorted(source.time_ns, min(ends), "right")) if ends else len(source.time_ns)
            for source in sources
        ]
        yield _in_order([(source.number, *source.take(count)) for source, count in zip(sources, counts, strict=True)])


def _in_order(taken: Sequence[tuple[int, Int64, Int64, npt.NDArray[np.uint8]]]) -> npt.NDArray[np.uint8]:
    numbers, times, lengths, blocks = zip(*taken, strict=True)
    owner = np.repeat(np.array(numbers), [len(some) for some in times])
    length, time_ns = np.concatenate(lengths), np.concatenate(times)
    order = np.argsort(time_ns, kind="stable")
    return written_blocks(np.concatenate(blocks), (np.cumsum(length) - length)[order], time_ns[order], owner[order])[0]
