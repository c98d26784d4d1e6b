"""Matching of messages and receives: traces have destinations but no tags."""

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
        """Convert a row of `analysis.mpi.calls.CALL`."""
        _, function, peer, size, began, ended, *_ = row
        return cls(FUNCTIONS[function].name, peer, size, began, ended)


@dataclass(frozen=True, slots=True)
class Message:
    """A message; ``tag`` is unique, because a replay matches only by tag."""

    source: int
    target: int
    tag: int
    bytes: int
    began_ns: int


CallIndex = tuple[int, int]
"""(rank, number of its call)"""


@dataclass(frozen=True, slots=True)
class MatchedMessages:
    """Messages sent and received by call; calls in neither had no partner."""

    sent: Mapping[CallIndex, Message]
    taken: Mapping[CallIndex, Message]


def match(ranks: Mapping[int, Sequence[Call]]) -> MatchedMessages:
    """Match messages and receives.

    Messages of one sender are received in their order; a receive without a source takes the message that was sent first. ``ranks``:
    rank -> its calls sorted by start, on one clock. Raises NotReplayable if messages and receives do not match.
    """
    sent: dict[CallIndex, Message] = {}
    for rank, calls in ranks.items():
        for number, call in enumerate(calls):
            if call.name in SENDS | EXCHANGES and call.peer >= 0:
                sent[rank, number] = Message(rank, call.peer, len(sent), call.bytes, call.began_ns)
    taken: dict[CallIndex, Message] = {}
    for rank, calls in ranks.items():
        taken |= _taken_by(rank, calls, (message for message in sent.values() if message.target == rank))
    return MatchedMessages(sent, taken)


def _taken_by(rank: int, calls: Sequence[Call], incoming: Iterable[Message]) -> dict[CallIndex, Message]:
    waiting: dict[int, deque[Message]] = {}
    for message in incoming:
        waiting.setdefault(message.source, deque()).append(message)
    named = Counter(call.peer for call in calls if call.name in RECEIVES and call.peer >= 0)
    free = {source: len(messages) - named[source] for source, messages in waiting.items()}
    taken: dict[CallIndex, Message] = {}
    for number, call in enumerate(calls):
        if call.name in RECEIVES and call.peer >= 0:
            if not waiting.get(call.peer):
                raise NotReplayable(
                    f"Rank {rank} receives more messages from rank {call.peer} than that rank sent in the trace."
                )
            taken[rank, number] = waiting[call.peer].popleft()
        elif call.name in RECEIVES | EXCHANGES:
            source = _first_sent(waiting, free, call)
            if source is not None:
                taken[rank, number] = waiting[source].popleft()
                free[source] -= 1
    unmatched = sum(map(len, waiting.values()))
    if unmatched:
        raise NotReplayable(f"The trace has no receive for {unmatched} of the messages sent to rank {rank}.")
    return taken


def _first_sent(waiting: Mapping[int, deque[Message]], free: Mapping[int, int], call: Call) -> int | None:
    """Return the source of the earliest message for this call, or None."""
    until = None if call.name == "Irecv" else call.ended_ns
    heads = [
        (messages[0].began_ns, source)
        for source, messages in waiting.items()
        if messages and free[source] > 0 and (until is None or messages[0].began_ns <= until)
    ]
    return min(heads)[1] if heads else None
