"""Which receive took which message. Traces name the destination of every message, not the source of every receive, and no tags."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from analysis.mpi.functions import FUNCTIONS
from analysis.replay.errors import NotReplayable

SENDS: Final = frozenset({"Send", "Bsend", "Ssend", "Rsend", "Isend", "Ibsend", "Issend", "Irsend"})
EXCHANGES: Final = frozenset({"Sendrecv", "Sendrecv_replace"})
RECEIVES: Final = frozenset({"Recv", "Irecv"})


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a rank; times in nanoseconds."""

    name: str
    peer: int
    bytes: int
    began_ns: int
    ended_ns: int

    @classmethod
    def of(cls, row: Sequence[int]) -> Call:
        """``row``: of `analysis.mpi.calls.CALL`."""
        _, function, peer, size, began, ended, *_ = row
        return cls(FUNCTIONS[function].name, peer, size, began, ended)


@dataclass(frozen=True, slots=True)
class Message:
    """``tag`` is its own: a replay matches by it alone."""

    source: int
    target: int
    tag: int
    bytes: int
    began_ns: int


Place = tuple[int, int]
"""(rank, number of its call)"""


@dataclass(frozen=True, slots=True)
class Matched:
    """What the calls sent and took; a call that is in neither had no partner (MPI_PROC_NULL)."""

    sent: Mapping[Place, Message]
    taken: Mapping[Place, Message]


def match(ranks: Mapping[int, Sequence[Call]]) -> Matched:
    """Give every message to a receive: those of one sender in their order; a receive without a source takes the one that
    was sent first.

    ``ranks``: rank -> its calls by their starts, on one clock. Raise NotReplayable where messages and receives do not fit together.
    """
    sent: dict[Place, Message] = {}
    for rank, calls in ranks.items():
        for number, call in enumerate(calls):
            if call.name in SENDS | EXCHANGES and call.peer >= 0:
                sent[rank, number] = Message(rank, call.peer, len(sent), call.bytes, call.began_ns)
    taken: dict[Place, Message] = {}
    for rank, calls in ranks.items():
        taken |= _taken_by(rank, calls, (message for message in sent.values() if message.target == rank))
    return Matched(sent, taken)


def _taken_by(rank: int, calls: Sequence[Call], incoming: Iterable[Message]) -> dict[Place, Message]:
    waiting: dict[int, deque[Message]] = {}
    for message in incoming:
        waiting.setdefault(message.source, deque()).append(message)
    named = Counter(call.peer for call in calls if call.name in RECEIVES and call.peer >= 0)
    free = {source: len(own) - named[source] for source, own in waiting.items()}
    taken: dict[Place, Message] = {}
    for number, call in enumerate(calls):
        if call.name in RECEIVES and call.peer >= 0:
            if not waiting.get(call.peer):
                raise NotReplayable(
                    f"Rank {rank} receives more from rank {call.peer} than that rank sent in the trace."
                )
            taken[rank, number] = waiting[call.peer].popleft()
        elif call.name in RECEIVES | EXCHANGES:
            source = _first_sent(waiting, free, call)
            if source is not None:
                taken[rank, number] = waiting[source].popleft()
                free[source] -= 1
    left = sum(map(len, waiting.values()))
    if left:
        raise NotReplayable(f"The trace shows no receive for {left} of the messages that were sent to rank {rank}.")
    return taken


def _first_sent(waiting: Mapping[int, deque[Message]], free: Mapping[int, int], call: Call) -> int | None:
    """The source of the message that was sent first of those that this call can have taken; None where there is none."""
    until = None if call.name == "Irecv" else call.ended_ns
    heads = [
        (own[0].began_ns, source)
        for source, own in waiting.items()
        if own and free[source] > 0 and (until is None or own[0].began_ns <= until)
    ]
    return min(heads)[1] if heads else None
