"""How far the clocks of two recordings are apart, from the frames that both hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from analysis.packets import NO_HOST, NO_TIME, TCP, PacketTable

Int64 = npt.NDArray[np.int64]

_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)
FEWEST: Final = 3
"""Frames in each direction; of fewer, one that waited in a queue would pass for the clock."""


@dataclass(frozen=True, slots=True)
class Offset:
    """A clock minus another: ``ns`` at ``at_ns`` of the other, growing by ``per_ns``; true within ``unsure_ns``.

    ``change_ns`` is by how much it went from the first half of the frames to the second.
    """

    ns: float
    at_ns: float
    per_ns: float
    unsure_ns: float
    change_ns: float

    def corrected(self, time_ns: Int64) -> Int64:
        """Stamps of the clock as the other would have written them."""
        there = time_ns - self.ns
        moved: Int64 = (time_ns - np.rint(self.ns + self.per_ns * (there - self.at_ns)).astype(np.int64)).astype(
            np.int64
        )
        return moved


def offset_between(first: PacketTable, second: PacketTable, outward: Sequence[str]) -> Offset | None:
    """The second table's clock minus the first's; None where too few frames were seen by both.

    ``outward`` are the addresses of the first's host. A frame is later at its receiver by its way: the least lead in
    one direction and the least in the other bound the offset, and the middle is told (Paxson 1998, section 3).
    """
    rows_1, rows_2 = _common(first, second)
    names = np.isin(np.arange(len(first.hosts) + 1), [n for n, host in enumerate(first.hosts) if host in set(outward)])
    sent = names[np.minimum(first.src[rows_1].astype(np.int64), len(first.hosts))]
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
    if abs(change) <= unsure:  # no more than the way of a frame explains
        return Offset(whole[0], float(there[0]), 0.0, unsure, change)
    middle = float(np.mean(there[~late])), float(np.mean(there[late]))
    per_ns = change / (middle[1] - middle[0])
    return Offset(early_half[0], middle[0], per_ns, unsure, change)


def _middle(lead: Int64, sent: npt.NDArray[np.bool_]) -> tuple[float, float] | None:
    """(offset, how unsure), ns."""
    if np.count_nonzero(sent) < FEWEST or np.count_nonzero(~sent) < FEWEST:
        return None
    most, least = float(np.min(lead[sent])), float(np.max(lead[~sent]))
    return (most + least) / 2, abs(most - least) / 2


def _common(first: PacketTable, second: PacketTable) -> tuple[Int64, Int64]:
    """Rows of frames that each table holds exactly once, with the same headers; what was sent again is no sure match."""
    known = {host: number for number, host in enumerate(dict.fromkeys((*first.hosts, *second.hosts)))}
    (keys_1, rows_1), (keys_2, rows_2) = _once(first, known), _once(second, known)
    _, where_1, where_2 = np.intersect1d(keys_1, keys_2, assume_unique=True, return_indices=True)
    found_1, found_2 = rows_1[where_1], rows_2[where_2]
    order = np.argsort(first.time_ns[found_1], kind="stable")
    return found_1[order], found_2[order]


def _once(table: PacketTable, known: Mapping[str, int]) -> tuple[npt.NDArray[np.uint64], Int64]:
    """(hash of the headers, row) of TCP frames; ``known`` numbers addresses alike in every table, as the tables do not."""
    rows = np.flatnonzero(((table.kind & TCP) > 0) & (table.time_ns != NO_TIME) & (table.src != NO_HOST))
    number = np.array([known[host] for host in table.hosts], np.uint64)
    key = np.zeros(len(rows), np.uint64)
    ends = (number[table.src[rows]], number[table.dst[rows]]) if len(number) else ()
    told = (table.sport, table.dport, table.seq, table.ack, table.payload, table.window, table.tcp_flags)
    for column in (*ends, *(each[rows] for each in told)):
        key = (key ^ column.astype(np.uint64)) * _SPREAD
        key ^= key >> np.uint64(29)
    keys, where, counts = np.unique(key, return_index=True, return_counts=True)
    return keys[counts == 1], rows[where[counts == 1]]
