"""Sends matched to receives by order, for ranks without a connection. Pure.

Messages between two ranks arrive in the order of their sends, so in each communicator the n-th receive from a rank matches its
n-th send; the status names the sender of a wildcard receive. Communicators with an unknown sender are not matched.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from analysis.mpi.calls import ANY_RANK, NO_RANK, Calls
from analysis.mpi.functions import FUNCTIONS
from analysis.mpi.streams import Int64

NEVER: Final = np.iinfo(np.int64).min // 4
_NUMBERS: Final = {function.name: number for number, function in enumerate(FUNCTIONS)}
_SENDS: Final = [n for n, f in enumerate(FUNCTIONS) if f.bytes.startswith("message") and f.kind == "point-to-point"]
EXCHANGES: Final = [_NUMBERS[name] for name in ("Sendrecv", "Sendrecv_replace")]
TAKES: Final = [*(_NUMBERS[name] for name in ("Recv", "Mprobe")), *EXCHANGES]
"""They end when their message is there."""
_RECEIVES: Final = [_NUMBERS["Irecv"], *TAKES]
_OF_ANYONE: Final = [_NUMBERS[name] for name in ("Improbe", "Imrecv", "Start", "Startall", "Recv_init")]
"""Receives whose sender is not in the trace, nor their communicator."""


@dataclass(frozen=True, slots=True)
class _Messages:
    """Messages of a sender in a communicator: receives (n,), hand-over times (n,)."""

    sender: int
    receives: npt.NDArray[np.void]
    sent_ns: Int64


class Sent:
    """Send times of the messages of one receiver, by the order of calls."""

    def __init__(self, calls: Calls, receiver: int, senders: Iterable[int]) -> None:
        received = calls.of(receiver)
        receives = received[np.isin(received["function"], _RECEIVES) & (received["source"] != NO_RANK)]
        of_anyone = receives["comm"][receives["source"] == ANY_RANK]
        self._of: list[_Messages] = []
        if calls.left_out.get(receiver) or np.isin(received["function"], _OF_ANYONE).any() or (of_anyone == 0).any():
            return
        receives = receives[~np.isin(receives["comm"], of_anyone)]
        for sender in senders:
            mine = receives[receives["source"] == sender]
            if not len(mine) or calls.left_out.get(sender):
                continue
            theirs = calls.of(sender)
            theirs = theirs[np.isin(theirs["function"], _SENDS) & (theirs["peer"] == receiver)]
            for comm in np.unique(mine["comm"]).tolist():
                self._match(sender, mine[mine["comm"] == comm], theirs["began_ns"][theirs["comm"] == comm])

    def _match(self, sender: int, mine: npt.NDArray[np.void], sent_ns: Int64) -> None:
        """Keep the messages of a sender in a communicator, unless a tag overtook one."""
        if len(mine) > len(sent_ns):
            return
        sent_ns = sent_ns[: len(mine)]
        if (sent_ns <= mine["ended_ns"])[np.isin(mine["function"], TAKES)].all():
            self._of.append(_Messages(sender, mine, sent_ns))

    def taken(self, waits: npt.NDArray[np.void], sender: int) -> Int64:
        """Return when the messages that these calls took were sent; NEVER if unknown."""
        sent_ns = np.full(len(waits), NEVER)
        for of in self._of:
            if of.sender == sender:
                place = np.minimum(np.searchsorted(of.receives["began_ns"], waits["began_ns"]), len(of.receives) - 1)
                same = [of.receives[name][place] == waits[name] for name in ("began_ns", "function")]
                takes = np.isin(waits["function"], TAKES)
                sent_ns = np.where(takes & same[0] & same[1], of.sent_ns[place], sent_ns)
        return sent_ns

    def last_within(self, waits: npt.NDArray[np.void]) -> tuple[Int64, Int64]:
        """Return sender (or -1) and time of the last message sent within each wait."""
        senders, last_ns = np.full(len(waits), -1, np.int64), np.full(len(waits), NEVER)
        for of in self._of:
            place = np.searchsorted(of.sent_ns, waits["ended_ns"], side="right") - 1
            at = np.maximum(place, 0)
            posted = of.receives["began_ns"][at] <= waits["began_ns"]
            within = (place >= 0) & (of.sent_ns[at] > waits["began_ns"]) & posted
            later = within & (of.sent_ns[at] > last_ns)
            senders, last_ns = np.where(later, of.sender, senders), np.where(later, of.sent_ns[at], last_ns)
        return senders, last_ns
