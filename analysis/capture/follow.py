"""A capture file that is still being written: the packets since the last poll."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from analysis.capture.stream import CaptureReader


@dataclass(frozen=True, slots=True)
class LiveCounters:
    """Totals so far, and packets since the last poll; rates by wall-clock time."""

    packets: int = 0
    wire_bytes: int = 0
    interval_s: float = 0.0
    interval_packets: int = 0
    interval_bytes: int = 0
    damaged: bool = False
    """The file is inconsistent; reading has stopped."""

    @property
    def pps(self) -> float | None:
        """Packets per second; None at the first poll."""
        return self.interval_packets / self.interval_s if self.interval_s > 0 else None

    @property
    def bps(self) -> float | None:
        """Bits per second on the wire; None at the first poll."""
        return 8 * self.interval_bytes / self.interval_s if self.interval_s > 0 else None


class Follower:
    """Reader of the packets appended to a capture since the last ``poll``.

    Incomplete records wait. The file need not exist yet. Use as a context manager, or ``close`` it.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._reader: CaptureReader | None = None
        self._looked_at: float | None = None
        self.latest = LiveCounters()

    def __enter__(self) -> Follower:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()

    def poll(self) -> LiveCounters:
        """Count new packets. Raises CaptureError if the file is not a supported capture."""
        if self._reader is None and self._path.exists():
            self._reader = CaptureReader(self._path)
        packets = wire_bytes = 0
        for table in self._reader.tables() if self._reader else ():
            packets += len(table)
            wire_bytes += int(table.orig_len.sum(dtype=np.int64))
        now = time.monotonic()
        self.latest = LiveCounters(
            packets=self.latest.packets + packets,
            wire_bytes=self.latest.wire_bytes + wire_bytes,
            interval_s=0.0 if self._looked_at is None else now - self._looked_at,
            interval_packets=packets,
            interval_bytes=wire_bytes,
            damaged=self._reader is not None and self._reader.damaged,
        )
        self._looked_at = now
        return self.latest


def follow(path: str | Path) -> Follower:
    """Follow the capture ``path`` while it grows."""
    return Follower(path)
