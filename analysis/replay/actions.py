"""Calls of a traced trial's ranks to traces for ``smpirun -replay`` (3.32)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from analysis.mpi.calls import Calls
from analysis.numbers import plural
from analysis.replay.collectives import COLLECTIVES, MAKERS, UNEVEN, lines_of
from analysis.replay.errors import NotReplayable
from analysis.replay.messages import EXCHANGES, RECEIVES, SENDS, Call, MatchedMessages, Message, match

FLOPS_PER_NS: Final = 1
"""Speed of the hosts of all platforms: traces have computing in nanoseconds."""
MOST_CALLS: Final = 1 << 20
_WAITS: Final = frozenset({"Wait", "Waitany", "Waitall"})
_LOCAL: Final = frozenset(
    {"Init", "Init_thread", "Finalize", "Comm_free", "Request_free", "Buffer_attach", "Buffer_detach"}
)
_REPLAYED: Final = SENDS | EXCHANGES | RECEIVES | COLLECTIVES | MAKERS | _WAITS | _LOCAL
_WITHOUT: Final = (
    "One-sided, persistent, probing, polling and non-blocking collective calls, files and some collective operations "
    "are not supported."
)
_ASSUMED: Final = (
    (
        _WAITS,
        "MPI_Wait and MPI_Waitany complete the oldest request, MPI_Waitall all requests.",
    ),
    (EXCHANGES, "An exchange receives the message that was sent first: traces name only its destination."),
    (frozenset({"Reduce", "Gather", "Gatherv"}), "The root of MPI_Reduce and MPI_Gather is assumed to be rank 0."),
    (UNEVEN, "In MPI_Alltoallv and MPI_Reduce_scatter all parts are assumed to be equal."),
    (frozenset({"Scan", "Exscan"}), "MPI_Scan is replayed as MPI_Allreduce."),
    (MAKERS, "Making a communicator is replayed as a barrier."),
)


@dataclass(frozen=True, slots=True)
class Traces:
    """Traces of one trial.

    ``lines``: actions of each rank, from 0. ``window_s``: measured time from the first call of any rank to the end of
    the last. ``assumed``: sentences on assumptions about missing data of the trace.
    """

    lines: tuple[tuple[str, ...], ...]
    window_s: float
    assumed: tuple[str, ...]


def traces(calls: Calls) -> Traces:
    """Convert the calls to traces; time between calls is computing.

    Raises NotReplayable with a sentence if some call cannot be replayed; no call is dropped.
    """
    ranks = sorted(calls.left_out)
    calls_of = {rank: [Call.of(row) for row in calls.of(rank).tolist()] for rank in ranks}
    _require(calls, calls_of)
    matched, together = match(calls_of), lines_of(calls_of)
    began = min(rows[0].began_ns for rows in calls_of.values())
    ended = max(rows[-1].ended_ns for rows in calls_of.values())
    lines = tuple(tuple(_Rank(rank, calls_of[rank], matched, together).lines(began)) for rank in ranks)
    called = {call.name for rows in calls_of.values() for call in rows}
    return Traces(lines, (ended - began) / 1e9, tuple(sentence for which, sentence in _ASSUMED if which & called))


def _require(calls: Calls, calls_of: Mapping[int, Sequence[Call]]) -> None:
    if len(calls_of) < 2 or list(calls_of) != list(range(len(calls_of))):
        raise NotReplayable("A replay needs the calls of all ranks, and at least two ranks.")
    if left_out := sum(calls.left_out.values()):
        raise NotReplayable(f"The trace lacks its beginning: {plural(left_out, 'call')} did not fit into it.")
    if len(calls.rows) > MOST_CALLS:
        raise NotReplayable(f"The trace has {plural(len(calls.rows), 'call')}: more than {MOST_CALLS} take too long.")
    if not all(calls_of.values()):
        raise NotReplayable("One rank has no calls.")
    unsupported = Counter(call.name for rows in calls_of.values() for call in rows if call.name not in _REPLAYED)
    if unsupported:
        names = ", ".join(f"MPI_{name} ({plural(count, 'call')})" for name, count in unsupported.most_common(4))
        raise NotReplayable(f"The program has calls that cannot be replayed: {names}. {_WITHOUT}")


class _Rank:
    def __init__(self, rank: int, calls: Sequence[Call], matched: MatchedMessages, together: Sequence[str]) -> None:
        self.rank, self.calls, self.matched = rank, calls, matched
        self.together = iter(together)
        self.open: list[Message] = []

    def lines(self, began_ns: int) -> Iterator[str]:
        yield f"{self.rank} init"
        free_since = began_ns
        for number, call in enumerate(self.calls):
            if call.name in _LOCAL:  # counts as computing
                continue
            if call.began_ns > free_since:
                yield f"{self.rank} compute {(call.began_ns - free_since) * FLOPS_PER_NS}"
            yield from (f"{self.rank} {action}" for action in self._actions(number, call))
            free_since = max(free_since, call.ended_ns)
        if self.open:
            yield f"{self.rank} waitall {len(self.open)}"
        yield f"{self.rank} finalize"

    def _actions(self, number: int, call: Call) -> Iterator[str]:
        if call.name in COLLECTIVES | MAKERS:
            yield next(self.together).replace("OWN", str(call.bytes))
        elif call.name in _WAITS:
            yield from self._wait(call.name)
        else:
            yield from self._messages(number, call)

    def _messages(self, number: int, call: Call) -> Iterator[str]:
        taken, sent = self.matched.taken.get((self.rank, number)), self.matched.sent.get((self.rank, number))
        both = taken is not None and sent is not None
        if taken is not None:
            word = "irecv" if both or call.name == "Irecv" else "recv"
            yield f"{word} {taken.source} {taken.tag} {taken.bytes}"
        if sent is not None:
            starts = call.name.startswith("I")
            yield f"{'isend' if starts else 'send'} {sent.target} {sent.tag} {sent.bytes}"
            if starts:
                self.open.append(sent)
        if taken is not None and both:
            yield _wait_for(taken)
        elif taken is not None and call.name == "Irecv":
            self.open.append(taken)

    def _wait(self, name: str) -> Iterator[str]:
        if name == "Waitall" and self.open:
            yield f"waitall {len(self.open)}"
            self.open.clear()
        elif self.open:
            yield _wait_for(self.open.pop(0))


def _wait_for(message: Message) -> str:
    return f"wait {message.source} {message.target} {message.tag}"
