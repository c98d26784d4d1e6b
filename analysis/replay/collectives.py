"""Collective operations of all ranks as actions of a replay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from analysis.replay.errors import NotReplayable
from analysis.replay.messages import Call

COLLECTIVES: Final = frozenset(
    {"Barrier", "Bcast", "Gather", "Gatherv", "Scatter", "Allgather", "Allgatherv", "Alltoall", "Reduce", "Allreduce"}
    | {"Reduce_scatter", "Reduce_scatter_block", "Alltoallv", "Scan", "Exscan"}
)
UNEVEN: Final = frozenset({"Alltoallv", "Reduce_scatter"})
"""Operations for which the trace has only the sum of the sizes."""
MAKERS: Final = frozenset({"Comm_dup", "Comm_dup_with_info", "Comm_split", "Comm_split_type", "Comm_create"})
"""Operations that create communicators; their cost is synchronisation."""
_MEETING: Final = frozenset({"Barrier", "Allgather", "Allgatherv", "Alltoall", "Allreduce", "Reduce_scatter_block"})
"""No rank can return before all have called."""
_SLACK_NS: Final = 100_000


def lines_of(ranks: Mapping[int, Sequence[Call]]) -> list[str]:
    """Return the action of every collective call, without its first word, the rank.

    Raises NotReplayable if the ranks do not call the same operations in the same order, or if one returned before another called:
    these are operations of a part of the ranks, and the trace does not name it.
    """
    collectives = [[call for call in calls if call.name in COLLECTIVES | MAKERS] for _, calls in sorted(ranks.items())]
    if len({tuple(call.name for call in calls) for calls in collectives}) > 1:
        raise NotReplayable("The ranks call different collective operations: some are over a part of the ranks.")
    lines = []
    for together in zip(*collectives, strict=True):
        name = together[0].name
        if name in _MEETING and max(c.began_ns for c in together) > min(c.ended_ns for c in together) + _SLACK_NS:
            raise NotReplayable(
                f"One rank returned from MPI_{name} before another called it: it is over a part of the ranks."
            )
        lines.append(_action(name, [call.bytes for call in together]))
    return lines


def _action(name: str, sizes: Sequence[int]) -> str:
    """Format an action; ``sizes`` are bytes per rank (`analysis.mpi.functions`)."""
    ranks, most = len(sizes), max(sizes)
    root = sizes.index(most) if name in {"Bcast", "Scatter"} else 0
    share = most // ranks
    each_size = " ".join(map(str, sizes))
    return {
        "Bcast": f"bcast {most} {root}",
        "Scatter": f"scatter {share} {share} {root}",
        "Gather": f"gather {most} {most} 0",
        "Gatherv": f"gatherv OWN {each_size} 0",
        "Allgather": f"allgather {most} {most}",
        "Allgatherv": f"allgatherv OWN {each_size}",
        "Alltoall": f"alltoall {share} {share}",
        "Reduce": f"reduce {most} 0 0",
        "Allreduce": f"allreduce {most} 0",
        "Alltoallv": f"alltoall {sum(sizes) // ranks**2} {sum(sizes) // ranks**2}",
        "Scan": f"allreduce {most} 0",
        "Exscan": f"allreduce {most} 0",
        **dict.fromkeys(
            ("Reduce_scatter", "Reduce_scatter_block"), f"reducescatter {' '.join([str(share)] * ranks)} 0"
        ),
    }.get(name, "barrier")
