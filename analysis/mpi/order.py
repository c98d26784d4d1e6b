"""Which send a receive waited for where no connection tells: messages between two ranks arrive in the order in which they were sent. Pure.

So the n-th receive that names a rank has the n-th message of that rank, unless a receive takes messages of anyone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np
import numpy.typing as npt

from analysis.mpi.calls import Calls
from analysis.mpi.functions import FUNCTIONS
from analysis.mpi.streams import Int64

NEVER: Final = np.iinfo(np.int64).min // 4
_NUMBERS: Final = {function.name: number for number, function in enumerate(FUNCTIONS)}
_SENDS: Final = [n for n, f in enumerate(FUNCTIONS) if f.bytes.startswith("message") and f.kind == "point-to-point"]
_RECEIVES: Final = [_NUMBERS[name] for name in ("Recv", "Irecv")]
_OF_ANYONE: Final = [
    _NUMBERS[name] for name in ("Sendrecv", "Sendrecv_replace", "Mrecv", "Imrecv", "Start", "Startall", "Recv_init")
]
"""Receives whose sender is not in the trace."""


class Sent:
    """When the messages that one rank received were handed over, as far as the order of calls tells."""

    def __init__(self, calls: Calls, receiver: int, senders: Iterable[int]) -> None:
        own = calls.of(receiver)
        receives = own[np.isin(own["function"], _RECEIVES)]
        from_anyone = np.isin(own["function"], _OF_ANYONE).any() or (receives["peer"] < 0).any()
        self._of: dict[int, tuple[npt.NDArray[np.void], Int64]] = {}
        if from_anyone or calls.left_out.get(receiver):
            return
        for sender in senders:
            theirs = calls.of(sender)
            sent_ns = theirs["began_ns"][np.isin(theirs["function"], _SENDS) & (theirs["peer"] == receiver)]
            mine = receives[receives["peer"] == sender]
            if calls.left_out.get(sender) or not 0 < len(mine) <= len(sent_ns):
                continue
            sent_ns = sent_ns[: len(mine)]
            blocking = mine["function"] == _NUMBERS["Recv"]
            if (sent_ns <= mine["ended_ns"])[blocking].all():  # else another tag or communicator overtook it
                self._of[sender] = mine, sent_ns

    def named(self, waits: npt.NDArray[np.void], sender: int) -> Int64:
        """When what each of these receives of ``sender`` took was handed over; NEVER where that is not known."""
        mine, sent_ns = self._of.get(sender, (waits[:0], np.zeros(0, np.int64)))
        place = np.minimum(np.searchsorted(mine["began_ns"], waits["began_ns"]), max(len(mine) - 1, 0))
        if not len(mine):
            return np.full(len(waits), NEVER)
        same = (mine["began_ns"][place] == waits["began_ns"]) & (waits["function"] == _NUMBERS["Recv"])
        return np.where(same, sent_ns[place], NEVER)

    def last_within(self, waits: npt.NDArray[np.void]) -> tuple[Int64, Int64]:
        """Of the messages that were asked for before each wait and handed over within it the last one: its sender (or -1), and when."""
        senders, last_ns = np.full(len(waits), -1, np.int64), np.full(len(waits), NEVER)
        for sender, (mine, sent_ns) in self._of.items():
            place = np.searchsorted(sent_ns, waits["ended_ns"], side="right") - 1
            at = np.maximum(place, 0)
            within = (place >= 0) & (sent_ns[at] > waits["began_ns"]) & (mine["began_ns"][at] <= waits["began_ns"])
            later = within & (sent_ns[at] > last_ns)
            senders, last_ns = np.where(later, sender, senders), np.where(later, sent_ns[at], last_ns)
        return senders, last_ns
