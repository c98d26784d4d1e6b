"""Recordings of several hosts as one capture that counts every frame once.

A frame between two hosts is in both of their recordings. All frames of a pair are taken from the recording of the first of them:
a connection keeps the times of one clock, and its round trips are those that this host saw. Stamps of other hosts are corrected by
the offsets of their clocks, which orders connections among each other.
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
"""Limit of the shares before compression; they are on disk together with the recordings."""
WINDOW_PACKETS: Final = 1 << 19
"""Packets of all shares that are sorted at a time."""
WINDOW_BYTES: Final = 1 << 27
"""Of these packets, which may be as long as the snap length; of a share at least one."""
_SECTION: Final = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)


@dataclass(frozen=True, slots=True)
class Joined:
    """Result of joining. ``clocks``: offset of each host's clock, if determined."""

    packets: int
    hosts: tuple[str, ...]
    clocks: dict[str, Offset] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON-ready data, in seconds."""
        clocks = {
            host: {
                "offset_s": offset.ns / 1e9,
                "unsure_s": offset.unsure_ns / 1e9,
                "change_s": offset.change_ns / 1e9,
            }
            for host, offset in self.clocks.items()
        }
        return {"hosts": list(self.hosts), "packets": self.packets, "clocks": clocks}


def join(recordings: Sequence[Recording], target: Path) -> Joined:
    """Write one zstd-compressed pcapng capture of ``recordings``. Raises CaptureError."""
    require_size(recordings)
    with tempfile.TemporaryDirectory(dir=target.parent) as directory:
        places = [Path(directory, str(number)) for number in range(len(recordings))]
        for number, share in enumerate(places):
            share.mkdir()
            write_share(recordings, number, share)
        return join_shares([recording.host for recording in recordings], places, target)


def require_size(recordings: Sequence[Recording]) -> None:
    """Raise UnreadableCapture if the recordings are too large."""
    if sum(recording.path.stat().st_size for recording in recordings) > 2 * MOST_BYTES:
        raise _too_large(len(recordings))


def join_shares(hosts: Sequence[str], places: Sequence[Path], target: Path) -> Joined:
    """Join the shares in ``places``, in bounded memory. Raises CaptureError."""
    if sum((share / "blocks").stat().st_size for share in places) > MOST_BYTES:
        raise _too_large(len(places))
    clocks = _clocks(places)
    sources = [_Source(number, share, clocks.get(number)) for number, share in enumerate(places)]
    unfinished = target.with_name(target.name + ".part")
    with unfinished.open("wb") as stream, zstandard.ZstdCompressor(level=1).stream_writer(stream) as packed:
        packed.write(_SECTION + b"".join((share / "interface").read_bytes() for share in places))
        for blocks in _merged(sources):
            packed.write(blocks.data)
    unfinished.replace(target)
    packets = sum(source.packets for source in sources)
    return Joined(packets, tuple(hosts), {hosts[number]: clocks[number] for number in sorted(clocks)})


def _too_large(hosts: int) -> UnreadableCapture:
    return UnreadableCapture(f"the recordings of {hosts} hosts are too large to be joined")


def _clocks(places: Sequence[Path]) -> dict[int, Offset]:
    """Return clock offsets from the first host, direct or by way of a third."""
    offsets: dict[int, Offset] = {}
    first = read_sightings(places[0])
    for number in range(1, len(places)):
        direct = offset_between(first, read_sightings(places[number]), 0)
        if direct is not None:
            offsets[number] = direct
    for number in range(1, len(places)):
        for middle in [] if number in offsets else sorted(offsets, key=lambda other: offsets[other].unsure_ns):
            step = offset_between(read_sightings(places[middle]), read_sightings(places[number]), middle)
            if step is not None:
                offsets[number] = _both(offsets[middle], step)
                break
    return offsets


def _both(first: Offset, second: Offset) -> Offset:
    return Offset(
        ns=first.ns + second.ns + first.per_ns * (second.at_ns - first.ns - first.at_ns),
        at_ns=second.at_ns - first.ns,
        per_ns=first.per_ns + second.per_ns,
        unsure_ns=first.unsure_ns + second.unsure_ns,
        change_ns=first.change_ns + second.change_ns,
    )


class _Source:
    def __init__(self, number: int, directory: Path, clock: Offset | None) -> None:
        self.number = number
        self._directory = directory
        self._clock = clock
        self.packets = (directory / "time_ns").stat().st_size // 8
        self._next_packet = self._next_byte = 0
        self.time_ns = self._length = np.zeros(0, np.int64)

    @property
    def has_more(self) -> bool:
        """True if the share has packets after those of ``time_ns``."""
        return self._next_packet < self.packets

    def fill(self, some: int, some_bytes: int) -> None:
        """Read the times of the next packets if all earlier ones are taken."""
        if len(self.time_ns) or not self.has_more:
            return
        at = 8 * self._next_packet
        times = np.fromfile(self._directory / "time_ns", np.int64, some, offset=at)
        length = np.fromfile(self._directory / "length", np.int64, some, offset=at)
        fitting = max(1, int(np.searchsorted(np.cumsum(length), some_bytes, "right")))
        times, self._length = times[:fitting], length[:fitting]
        # The correction of a clock that was set by seconds is so steep that frames would change order.
        self.time_ns = times if self._clock is None else np.maximum.accumulate(self._clock.corrected(times))
        self._next_packet += len(times)

    def take(self, count: int) -> tuple[Int64, Int64, npt.NDArray[np.uint8]]:
        times, lengths = self.time_ns[:count], self._length[:count]
        size = int(lengths.sum())
        blocks = np.fromfile(self._directory / "blocks", np.uint8, size, offset=self._next_byte)
        self._next_byte += size
        self.time_ns, self._length = self.time_ns[count:], self._length[count:]
        return times, lengths, blocks


def _merged(sources: Sequence[_Source]) -> Iterator[npt.NDArray[np.uint8]]:
    """Yield the blocks of all shares sorted by time; ties go to the earlier share."""
    some = max(WINDOW_PACKETS // len(sources), 256)
    while True:
        for source in sources:
            source.fill(some, WINDOW_BYTES // len(sources))
        if not any(len(source.time_ns) for source in sources):
            return
        # Later packets of a share may follow right after the last one that was read.
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
