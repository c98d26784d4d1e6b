"""Timelines of the ranks of a traced run, in steps. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis.mpi.calls import Calls
from analysis.mpi.streams import Int64
from analysis.mpi.waits import is_long_wait

Shares = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Timeline:
    """Steps of equal length.

    ``inside`` and ``waiting`` (ranks, steps): shares of each step inside MPI, and of it in long waits. NaN where the
    calls of a rank are not known: before the first one that its trace kept, and after its last.
    """

    ranks: tuple[int, ...]
    edges_ns: Int64
    inside: Shares
    waiting: Shares


def span_of(calls: Calls) -> tuple[int, int]:
    """Return the start of the first and the end of the last call, ns since the epoch.

    Raises ValueError without calls.
    """
    return int(calls.rows["began_ns"].min()), int(calls.rows["ended_ns"].max())


def timeline(calls: Calls, first_ns: int, until_ns: int, steps: int, most_ranks: int) -> Timeline:
    """Return the first ``most_ranks`` ranks over a span, in ``steps`` steps."""
    ranks = tuple(np.unique(calls.rows["rank"])[:most_ranks].tolist())
    edges_ns = first_ns + np.rint(np.linspace(0, until_ns - first_ns, steps + 1)).astype(np.int64)
    length_ns = np.maximum(np.diff(edges_ns), 1)
    inside, waiting = (np.zeros((len(ranks), steps)) for _ in range(2))
    for row, rank in enumerate(ranks):
        rank_calls = calls.of(rank)
        inside[row] = np.diff(_covered(rank_calls, edges_ns)) / length_ns
        waiting[row] = np.diff(_covered(rank_calls[is_long_wait(rank_calls)], edges_ns)) / length_ns
        unknown = (edges_ns[1:] <= rank_calls["began_ns"][0]) | (edges_ns[:-1] >= rank_calls["ended_ns"].max())
        inside[row, unknown] = waiting[row, unknown] = np.nan
    return Timeline(ranks, edges_ns, inside, waiting)


def _covered(calls: npt.NDArray[np.void], edges_ns: Int64) -> Int64:
    """Return the nanoseconds inside calls before each edge; threads count once."""
    if not len(calls):
        return np.zeros(len(edges_ns), np.int64)
    latest = np.maximum.accumulate(calls["ended_ns"])
    begins = np.maximum(calls["began_ns"], np.concatenate([calls["began_ns"][:1], latest[:-1]]))
    lengths = np.maximum(calls["ended_ns"] - begins, 0)
    whole = np.concatenate([[0], np.cumsum(lengths)])
    place = np.searchsorted(begins, edges_ns, side="right")
    last = np.maximum(place - 1, 0)
    over = np.clip(begins[last] + lengths[last] - edges_ns, 0, None)
    covered: Int64 = np.where(place > 0, whole[place] - over, 0)
    return covered
