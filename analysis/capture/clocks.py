"""Clock offset between two recordings, from the frames that both contain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]

FEWEST: Final = 3
"""Frames per direction; with fewer, a single queued frame would distort the offset."""


@dataclass(frozen=True, slots=True)
class Offset:
    """Offset of a clock from another: ``ns`` at ``at_ns`` of the other.

    It grows by ``per_ns`` and is accurate to ``unsure_ns``. ``change_ns`` is the change from the first half of the
    frames to the second.
    """

    ns: float
    at_ns: float
    per_ns: float
    unsure_ns: float
    change_ns: float

    def corrected(self, time_ns: Int64) -> Int64:
        """Convert stamps of the clock to those of the other."""
        there = time_ns - self.ns
        moved: Int64 = (time_ns - np.rint(self.ns + self.per_ns * (there - self.at_ns)).astype(np.int64)).astype(
            np.int64
        )
        return moved


@dataclass(frozen=True, slots=True)
class Sightings:
    """Frames that a recording contains once, sorted by ``key``, a hash of headers."""

    key: npt.NDArray[np.uint64]
    time_ns: Int64
    owner: npt.NDArray[np.int32]


def offset_between(first: Sightings, second: Sightings, sender: int) -> Offset | None:
    """Return the second clock minus the first; None for too few common frames.

    ``sender`` is the number of the first. A frame arrives later than it was sent: the smallest lead in one direction and the
    smallest in the other bound the offset; the result is the middle (Paxson 1998, section 3).
    """
    _, rows_1, rows_2 = np.intersect1d(first.key, second.key, assume_unique=True, return_indices=True)
    order = np.argsort(first.time_ns[rows_1], kind="stable")
    rows_1, rows_2 = rows_1[order], rows_2[order]
    sent = first.owner[rows_1] == sender
    there, lead = first.time_ns[rows_1], second.time_ns[rows_2] - first.time_ns[rows_1]
    whole = _middle(lead, sent)
    if whole is None:
        return None
    late = there > np.median(there)
    early_half, late_half = _middle(lead[~late], sent[~late]), _middle(lead[late], sent[late])
    if early_half is None or late_half is None:
        return Offset(whole[0], float(there[0]), 0.0, whole[1], 0.0)
    unsure = max(early_half[1], late_half[1])
    change = late_half[0] - early_half[0]
    if abs(change) <= unsure:  # the transit time of a frame explains it
        return Offset(whole[0], float(there[0]), 0.0, unsure, change)
    middle = float(np.mean(there[~late])), float(np.mean(there[late]))
    per_ns = change / (middle[1] - middle[0])
    return Offset(early_half[0], middle[0], per_ns, unsure, change)


def _middle(lead: Int64, sent: npt.NDArray[np.bool_]) -> tuple[float, float] | None:
    """Return (offset, uncertainty) in ns; None for too few frames."""
    if np.count_nonzero(sent) < FEWEST or np.count_nonzero(~sent) < FEWEST:
        return None
    most, least = float(np.min(lead[sent])), float(np.max(lead[~sent]))
    return (most + least) / 2, abs(most - least) / 2
