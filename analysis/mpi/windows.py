"""Receive windows: when they let each packet pass. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from analysis.packets import NO_SCALE

Int64 = npt.NDArray[np.int64]
NEVER_CLOSED: Final = np.iinfo(np.int64).min // 4
LARGEST_SEGMENT: Final = 1460
"""Maximum segment of Ethernet, for connections without a SYN."""
_MOST_SHIFT: Final = 14
"""RFC 7323."""


@dataclass(frozen=True, slots=True)
class Handshake:
    """SYNs of both ends of a connection: window shifts (or NO_SCALE), segments."""

    shifts: dict[int, int] = field(default_factory=dict)
    segments: dict[int, int] = field(default_factory=dict)

    def add(self, side: int, shift: int, segment_bytes: int) -> None:
        """Note a SYN; ``segment_bytes`` 0: it does not say."""
        self.shifts[side] = shift
        if segment_bytes:
            self.segments[side] = segment_bytes

    def shift_of(self, side: int) -> int | None:
        """Return the shift of this side's windows; None without both SYNs."""
        if len(self.shifts) < 2:
            return None
        return 0 if int(NO_SCALE) in self.shifts.values() else min(self.shifts[side], _MOST_SHIFT)

    @property
    def segment_bytes(self) -> int:
        """Return the maximum segment size of this connection."""
        return min(self.segments.values(), default=LARGEST_SEGMENT)


def opened_ns(
    time_ns: Int64, start: Int64, end: Int64, answered_ns: Int64, last_allowed: Int64, segment_bytes: int
) -> Int64:
    """Return when the window let each packet (n,) pass.

    If that is after the packet before it, the window was closed in between.

    ``start``, ``end``: of each packet in the stream; ``last_allowed`` (m,): where the window ended by each answer, at ``answered_ns``.
    A window is also closed if it holds less than a segment and less than the next packet. NEVER_CLOSED if unknown.
    """
    if not len(answered_ns) or not len(time_ns):
        return np.full(len(time_ns), NEVER_CLOSED)
    before = np.concatenate([start[:1], np.maximum.accumulate(end)[:-1]])
    wanted = before + np.minimum(end - before, segment_bytes)
    place = np.searchsorted(np.maximum.accumulate(last_allowed), wanted)
    opened = answered_ns[np.minimum(place, len(answered_ns) - 1)]
    followed = np.concatenate([time_ns[:1], time_ns[:-1]]) >= answered_ns[0]
    known = followed & (end > before) & (place < len(answered_ns)) & (opened <= time_ns)
    return np.where(known, opened, NEVER_CLOSED).astype(np.int64)
