"""Causes of waits in collectives, from the arrival of each rank. Pure.

A collective in which all ranks need all ranks ends after the last arrival. The order of calls in each communicator matches the
calls of one collective; different functions or impossible times show a mismatch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from analysis.mpi.calls import Calls, members_of
from analysis.mpi.cores import Cores, at_its_end, on_one_host
from analysis.mpi.functions import FUNCTIONS
from analysis.mpi.streams import Int64
from analysis.mpi.wait_sums import ALL_RANKS, UNKNOWN_RANK, Sums, of_causes

_EVERYBODY_NEEDS_EVERYBODY: Final = (
    *("Barrier", "Allreduce", "Allgather", "Allgatherv", "Alltoall", "Alltoallv", "Alltoallw"),
    *("Reduce_scatter", "Reduce_scatter_block"),
)
_FROM_ROOT: Final = ("Bcast", "Scatter", "Scatterv")
"""Only the root sends bytes, which identifies it."""
_OTHERS: Final = ("Gather", "Gatherv", "Reduce", "Scan", "Exscan")
_NUMBERS: Final = {function.name: number for number, function in enumerate(FUNCTIONS)}
_EVERY: Final = [_NUMBERS[name] for name in _EVERYBODY_NEEDS_EVERYBODY]
_ROOTED: Final = [_NUMBERS[name] for name in _FROM_ROOT]
_ALL: Final = [*_EVERY, *_ROOTED, *(_NUMBERS[name] for name in _OTHERS)]
_CLOCKS_APART_NS: Final = 20_000

IN_PARTS: Final = "the ranks took part in different collectives, and the trace does not match them"
NO_ROOT: Final = "the root of the collective is not known"
BETWEEN: Final = "a rank came after the root, and may or may not have passed the data on"


@dataclass(frozen=True, slots=True)
class _Meetings:
    """Collectives of a communicator, in order: ``function`` (n,), others (n, ranks)."""

    ranks: tuple[int, ...]
    function: Int64
    began_ns: Int64
    ended_ns: Int64
    bytes: Int64
    no_core_within_ns: Int64
    on_one_host: bool


def explain_collectives(sums: Sums, calls: Calls, cores: Cores, hosts: Mapping[int, str], long_ns: int) -> None:
    """Add every collective of at least ``long_ns``: the late rank and the transfer."""
    rows = calls.rows[np.isin(calls.rows["function"], _ALL)]
    rows = rows[np.argsort(rows["comm"], kind="stable")]
    _, first = np.unique(rows["comm"], return_index=True)
    for inside in np.split(rows, first[1:]):
        if len(inside) and members_of(int(inside["comm"][0])) != 1:
            _explain_communicator(sums, inside, calls.left_out, cores, hosts, long_ns)


def _explain_communicator(
    sums: Sums,
    rows: npt.NDArray[np.void],
    left_out: Mapping[int, int],
    cores: Cores,
    hosts: Mapping[int, str],
    long_ns: int,
) -> None:
    """Add the collectives of one communicator; ``rows`` are by rank and start."""
    by_rank = {rank: rows[rows["rank"] == rank] for rank in np.unique(rows["rank"]).tolist()}
    meetings = None
    if len(by_rank) == members_of(int(rows["comm"][0])):
        together, any_left_out = on_one_host(hosts, by_rank), any(left_out.get(rank) for rank in by_rank)
        meetings = _meetings(by_rank, any_left_out=any_left_out, together=together)
    for place, (rank, calls) in enumerate(by_rank.items()):
        matched = len(meetings.function) if meetings else 0
        older = calls[: len(calls) - matched]
        sums.unexplained(UNKNOWN_RANK, rank, older[older["ended_ns"] - older["began_ns"] >= long_ns], IN_PARTS)
        if meetings:
            _explain(sums, meetings, cores, place, long_ns)


def _meetings(by_rank: dict[int, npt.NDArray[np.void]], *, any_left_out: bool, together: bool) -> _Meetings | None:
    """Return the calls of all ranks side by side; None if they are not the same ones."""
    counts = {len(rows) for rows in by_rank.values()}
    count = min(counts)
    if not count or (len(counts) > 1 and not any_left_out):
        return None
    columns = {
        name: np.stack([rows[name][-count:].astype(np.int64) for rows in by_rank.values()], axis=1)
        for name in ("function", "began_ns", "ended_ns", "bytes", "no_core_within_ns")
    }
    function = columns["function"]
    every = np.isin(function[:, 0], _EVERY)
    left_early = columns["began_ns"].max(axis=1) > columns["ended_ns"].min(axis=1) + _CLOCKS_APART_NS
    if (function != function[:, :1]).any() or (every & left_early).any():
        return None
    columns["function"] = function[:, 0]
    return _Meetings(tuple(by_rank), on_one_host=together, **columns)


def _explain(sums: Sums, meetings: _Meetings, cores: Cores, place: int, long_ns: int) -> None:
    began, ended = meetings.began_ns[:, place], meetings.ended_ns[:, place]
    long = ended - began >= long_ns
    last, no_root = _waited_for(meetings, place)
    came_ns = np.take_along_axis(meetings.began_ns, last[:, None], axis=1)[:, 0]
    late_ns = np.clip(came_ns, began, ended) - began
    rest_ns = ended - began - late_ns
    rooted = np.isin(meetings.function, _ROOTED)
    others_ns = np.where(meetings.began_ns <= ended[:, None], meetings.began_ns, 0).max(axis=1)
    between_ns = np.where(rooted, np.maximum(others_ns - np.maximum(came_ns, began), 0), 0)
    between_ns = np.minimum(between_ns, rest_ns)
    has_root = long & ~no_root
    for sender in np.unique(last[has_root & (late_ns > 0)]).tolist():
        which = has_root & (last == sender) & (late_ns > 0)
        no_core = cores.outside(meetings.ranks[sender], began[which], began[which] + late_ns[which])
        lacked_ns, whole_ns = float(no_core.sum()), float(late_ns[which].sum())
        by_cause = of_causes(late_sender=whole_ns - lacked_ns, no_core=lacked_ns)
        sums.add(meetings.ranks[sender], meetings.ranks[place], int(which.sum()), by_cause)
    if has_root.any():
        transfer = rest_ns - between_ns
        lacked = at_its_end(meetings.no_core_within_ns[:, place], transfer if meetings.on_one_host else 0 * transfer)
        unknown_ns, lacked_ns = float(between_ns[has_root].sum()), float(lacked[has_root].sum())
        under_way_ns = float(transfer[has_root].sum()) - lacked_ns
        by_cause = of_causes(under_way=under_way_ns, no_core=lacked_ns, unknown=unknown_ns)
        sums.add(ALL_RANKS, meetings.ranks[place], int((has_root & (late_ns == 0)).sum()), by_cause)
        sums.why(BETWEEN, unknown_ns)
    whole_ns = float((ended - began)[long & no_root].sum())
    if whole_ns:
        sums.add(UNKNOWN_RANK, meetings.ranks[place], int((long & no_root).sum()), of_causes(unknown=whole_ns))
        sums.why(NO_ROOT, whole_ns)


def _waited_for(meetings: _Meetings, place: int) -> tuple[Int64, npt.NDArray[np.bool_]]:
    """Return the place of the awaited rank, and which are not known."""
    ended = meetings.ended_ns[:, [place]]
    came = np.where(meetings.began_ns <= ended, meetings.began_ns, 0)
    rooted = np.isin(meetings.function, _ROOTED)
    sent = meetings.bytes > 0
    last = np.where(rooted, sent.argmax(axis=1), came.argmax(axis=1))
    return last, rooted & (sent.sum(axis=1) != 1)
