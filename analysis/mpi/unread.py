"""Waits of senders while the receiver's window was closed. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from analysis.mpi.functions import FUNCTIONS
from analysis.mpi.streams import Int64, spent_until
from analysis.mpi.wait_sums import UNKNOWN_RANK, Sums, of_causes

_SENDS: Final = [n for n, f in enumerate(FUNCTIONS) if f.name in ("Send", "Bsend", "Ssend", "Rsend")]
NO_PEER: Final = "no packet of another rank came while the rank waited"


def explain_unread(
    sums: Sums,
    sender: int,
    rank_calls: npt.NDArray[np.void],
    waits: npt.NDArray[np.void],
    closed_ns: Mapping[int, Int64],
    long_ns: int,
) -> None:
    """Add waits without a packet, and sends that a closed window delayed.

    ``waits`` are those of one rank in which nothing came, ``rank_calls`` all of its calls; sends count from
    ``long_ns`` on.

    ``closed_ns``: by receiver, when its window kept what the rank had handed over, (m, 2). Of a send only that counts as waiting.
    """
    for receiver, spans in closed_ns.items():
        delays = _closed_part(
            spans, rank_calls[np.isin(rank_calls["function"], _SENDS) & (rank_calls["peer"] == receiver)]
        )
        delays = delays[delays >= long_ns]
        if len(delays):
            sums.add(receiver, sender, len(delays), of_causes(closed_window=float(delays.sum())))
    by_receiver = np.stack([np.zeros(len(waits)), *(_closed_part(spans, waits) for spans in closed_ns.values())])
    longest = by_receiver.argmax(axis=0)
    sums.unexplained(UNKNOWN_RANK, sender, waits[longest == 0], NO_PEER)
    for index, receiver in enumerate(closed_ns, 1):
        which = longest == index
        if which.any():
            closed = float(by_receiver[index, which].sum())
            rest = float((waits["ended_ns"] - waits["began_ns"])[which].sum()) - closed
            sums.add(receiver, sender, int(which.sum()), of_causes(closed_window=closed, unknown=rest))
            sums.why(NO_PEER, rest)


def _closed_part(spans: Int64, calls: npt.NDArray[np.void]) -> Int64:
    """Return the part of each call in ``spans``, except after its end."""
    if not len(spans):
        return np.zeros(len(calls), np.int64)
    last = np.maximum(np.searchsorted(spans[:, 0], calls["ended_ns"], side="right") - 1, 0)
    until = np.where(
        spans[last, 1] > calls["ended_ns"], np.minimum(spans[last, 0], calls["ended_ns"]), calls["ended_ns"]
    )
    return spent_until(spans, np.maximum(until, calls["began_ns"])) - spent_until(spans, calls["began_ns"])
