"""The traced calls of a trial's ranks, and their file format. Pure.

The bytes are one Zstandard frame: a line of JSON with the layout, then one column after the other. Starts are stored as
differences and ends as lengths, which compress well.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import zstandard

from analysis.mpi.functions import FUNCTIONS
from analysis.mpi.layout import table_number
from analysis.mpi.record import RankProfile

FORMAT: Final = 2
_FORMATS: Final = (1, 2)
MOST_CALLS: Final = 1 << 21
"""Calls of all ranks together; each rank keeps the last of an equal share."""
MOST_COMMUNICATORS: Final = 1000
CALL: Final = np.dtype(
    [
        ("rank", "<i4"), ("function", "<i2"), ("peer", "<i4"), ("bytes", "<i8"), ("began_ns", "<i8"), ("ended_ns", "<i8"),
        ("comm", "<i8"), ("source", "<i4"), ("no_core_before_ns", "<i8"), ("no_core_within_ns", "<i8"),
    ]
)  # fmt: skip
_OF_FORMAT_1: Final = 6
"""Columns of files without a list of columns; missing columns are unknown (-1)."""
_LINE_LIMIT_BYTES: Final = 1 << 20
_MOST_BYTES: Final = _LINE_LIMIT_BYTES + MOST_CALLS * CALL.itemsize


ANY_RANK: Final = -1
NO_RANK: Final = -2
_SIZE_BITS: Final = 24


class NotATrace(ValueError):
    """The bytes are not the calls of a trial; the message is a part of a sentence."""


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls by rank, and by their starts within a rank.

    ``rows`` (N,) of dtype CALL: ``function`` indexes FUNCTIONS, ``peer`` is a world rank or -1, times are nanoseconds since the epoch,
    the clock of captures. ``comm``: the communicator, a number that is the same in all of its members (``members_of`` gives their count), 0
    if unknown. ``source``: world rank of the sender that a receive matched, ANY_RANK if unknown, NO_RANK for MPI_PROC_NULL.
    ``no_core_before_ns``, ``no_core_within_ns``: how long the thread was runnable without a processor since its
    call before, and within this one; -1 if unknown. ``left_out``: calls of each rank before the first one that is kept.
    """

    rows: npt.NDArray[np.void]
    left_out: Mapping[int, int]

    def of(self, rank: int) -> npt.NDArray[np.void]:
        """Return the calls of one rank, by their starts."""
        first, behind = np.searchsorted(self.rows["rank"], [rank, rank + 1])
        return self.rows[first:behind]


def calls_of(profiles: Iterable[RankProfile], most: int = MOST_CALLS) -> Calls | None:
    """Return at most ``most`` calls of the ranks; None if a rank has no trace."""
    ordered = sorted(profiles, key=lambda profile: profile.rank)
    pieces, left_out = [], {}
    for profile in ordered:
        if profile.trace is None:
            return None
        share = max(1, most // len(ordered))
        events = profile.trace.rows[-share:]
        left_out[profile.rank] = profile.trace.left_out + len(profile.trace.rows) - len(events)
        rows = np.zeros(len(events), CALL)
        rows["rank"], rows["function"] = profile.rank, events["function"]
        rows["peer"] = events["peer"].astype(np.int64)
        rows["bytes"] = events["bytes"].astype(np.int64)
        for name in ("began", "ended"):
            rows[f"{name}_ns"] = events[name].astype(np.int64) + profile.real_offset_ns
        rows["comm"], rows["source"] = events["comm"].astype(np.int64), events["source"].astype(np.int64)
        for name in ("no_core_before", "no_core_within"):
            rows[f"{name}_ns"] = events[name].astype(np.int64)
        pieces.append(rows[np.argsort(rows["began_ns"], kind="stable")])
    return Calls(_with_known_names(np.concatenate(pieces)), left_out) if pieces else None


def _with_known_names(rows: npt.NDArray[np.void]) -> npt.NDArray[np.void]:
    """Forget ranks of no profile, and all but the communicators with most calls.

    A program can write any number of names into its profile, and each would cost an explanation its time.
    """
    ranks = np.unique(rows["rank"])
    for name in ("peer", "source"):
        rows[name][(rows[name] >= 0) & ~np.isin(rows[name], ranks)] = ANY_RANK
    comms, counts = np.unique(rows["comm"], return_counts=True)
    if len(comms) > MOST_COMMUNICATORS:
        most_used = comms[np.argsort(counts, kind="stable")[-MOST_COMMUNICATORS:]]
        rows["comm"][~np.isin(rows["comm"], most_used)] = 0
    return rows


def members_of(comm: int) -> int:
    """Return the number of ranks of a communicator; 0 if it is not known."""
    return max(0, comm) & ((1 << _SIZE_BITS) - 1)


def to_bytes(calls: Calls) -> bytes:
    """Return what ``from_bytes`` reads."""
    line = {
        "format": FORMAT,
        "table": table_number(),
        "rows": len(calls.rows),
        "columns": CALL.names,
        "left_out": {str(rank): count for rank, count in calls.left_out.items()},
    }
    columns = {name: calls.rows[name] for name in CALL.names or ()}
    columns["began_ns"] = np.diff(calls.rows["began_ns"], prepend=0)
    columns["ended_ns"] = calls.rows["ended_ns"] - calls.rows["began_ns"]
    content = b"".join(column.tobytes() for column in columns.values())
    return zstandard.compress(json.dumps(line).encode() + b"\n" + content, 5)


def from_bytes(data: bytes) -> Calls:
    """Read the calls of a trial. Raises NotATrace."""
    try:
        with zstandard.ZstdDecompressor().stream_reader(data) as stream:
            content = stream.read(_MOST_BYTES)
        line, _, columns = content.partition(b"\n")
        if len(line) > _LINE_LIMIT_BYTES:
            raise NotATrace("its first line is too long")
        header: dict[str, Any] = json.loads(line)
        count = int(header["rows"])
        left_out = {int(rank): int(number) for rank, number in header["left_out"].items()}
        names = [str(name) for name in header.get("columns", (CALL.names or ())[:_OF_FORMAT_1])]
    except (zstandard.ZstdError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise NotATrace(f"it is damaged: {error}") from None
    if header.get("format") not in _FORMATS or header.get("table") != table_number() or not _are_columns(names):
        raise NotATrace("it was written by another version")
    if count < 0 or len(columns) != count * sum(CALL[name].itemsize for name in names):
        raise NotATrace("its columns do not have the stated length")
    rows = np.full(count, -1).astype(CALL)
    at = 0
    for name in names:
        rows[name] = np.frombuffer(columns, CALL[name], count, at)
        at += count * CALL[name].itemsize
    rows["began_ns"] = np.cumsum(rows["began_ns"])
    rows["ended_ns"] += rows["began_ns"]
    if ((rows["function"] < 0) | (rows["function"] >= len(FUNCTIONS))).any():
        raise NotATrace("it names unknown functions")
    return Calls(rows, left_out)


def _are_columns(names: list[str]) -> bool:
    of_all = (CALL.names or ())[:_OF_FORMAT_1]
    return len(set(names)) == len(names) and set(of_all) <= set(names) <= set(CALL.names or ())
