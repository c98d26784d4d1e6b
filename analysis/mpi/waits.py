"""Causes of the long waits of a traced run, from packets. Pure.

Every long receive or wait is explained by the packets that ended it. A wait is over when its last bytes have come. Who
sent them is whom the call names, else the rank whose packet came last. Between two packets of that stream the wait is
split at the moment at which the sender handed over the first bytes of the second: before it the sender was late, or had
no processor; after it bytes were missing (a loss), or the receiver's window was closed to them, or they were on their
way, of which the link took what it needs for the frames that it carried. What follows on the last packet is the
receiver's, or was without a processor.

Which bytes belong to which message follows from the order: a message begins behind all that was on the wire when its call began,
and behind the message before it.

If no connection of two ranks is known, the order of their calls gives the time of each send.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from analysis.mpi.calls import Calls
from analysis.mpi.collectives import explain_collectives
from analysis.mpi.cores import Cores, at_its_end, on_one_host
from analysis.mpi.functions import FUNCTIONS
from analysis.mpi.order import EXCHANGES, NEVER, TAKES, Sent
from analysis.mpi.pairs import Pair
from analysis.mpi.streams import Int64, Wire
from analysis.mpi.unread import explain_unread
from analysis.mpi.wait_sums import LONG_WAIT_NS, UNKNOWN_RANK, Sums, Waits, of_causes

_RECEIVES: Final = ("Recv", "Probe", "Mprobe")
"""They wait for their sender alone."""
_WAITS: Final = (
    *_RECEIVES,
    *("Mrecv", "Sendrecv", "Sendrecv_replace", "Wait", "Waitall", "Waitany", "Waitsome"),
)
_NUMBERS: Final = {function.name: number for number, function in enumerate(FUNCTIONS)}

NO_STREAM: Final = "no connection between these ranks is in the capture"
OUT_OF_ORDER: Final = "ranks of one host, and the order of calls does not identify the message"
NOT_FOLLOWED: Final = "the capture exceeds the packets that are followed"


def explained(
    calls: Calls,
    wire: Wire,
    link_rate_bps: float | None = None,
    long_ns: int = LONG_WAIT_NS,
    hosts: Mapping[int, str] | None = None,
) -> Waits:
    """Explain every wait of at least ``long_ns``, and sends at a closed window.

    ``link_rate_bps``: of every host's link; without it nothing is at line rate. ``hosts``: of each rank, as far as they are known.
    """
    sums, cores = Sums(), Cores(calls)
    trial = _Known(calls, cores, wire, link_rate_bps, dict(hosts or {}))
    for rank in np.unique(calls.rows["rank"]).tolist():
        rank_calls = calls.of(rank)
        waits = rank_calls[is_long_wait(rank_calls, long_ns)]
        unseen = [other for other in calls.left_out if other != rank and (other, rank) not in wire.streams]
        sent = Sent(calls, rank, unseen)
        senders = _senders(waits, rank, wire, sent)
        for sender in np.unique(senders[senders >= 0]).tolist():
            _explain_pair(sums, trial, (sender, rank), waits[senders == sender], sent)
        closed = {to: trial.pair(rank, to).closed_ns() for to in trial.closed_to(rank)}
        explain_unread(sums, rank, rank_calls, waits[senders < 0], closed, long_ns)
    explain_collectives(sums, calls, cores, trial.hosts, long_ns)
    return replace(sums.result(), run_delay_known=cores.is_known)


@dataclass(frozen=True, slots=True)
class _Known:
    calls: Calls
    cores: Cores
    wire: Wire
    link_rate_bps: float | None
    hosts: Mapping[int, str]

    def pair(self, sender: int, receiver: int) -> Pair:
        """Return the pair of a stream that exists."""
        ranks = sender, receiver
        return Pair(self.calls, self.cores, self.wire, self.wire.streams[ranks], ranks, self.link_rate_bps)

    def closed_to(self, sender: int) -> list[int]:
        """Return the ranks whose windows delayed data of this one."""
        return [to for (rank, to), stream in self.wire.streams.items() if rank == sender and stream.was_closed]


def _explain_pair(sums: Sums, trial: _Known, ranks: tuple[int, int], waits: npt.NDArray[np.void], sent: Sent) -> None:
    if ranks not in trial.wire.streams:
        _explain_by_order(sums, trial, ranks, waits, sent)
        return
    followed = waits["ended_ns"] <= trial.wire.known_until_ns
    sums.unexplained(*ranks, waits[~followed], NOT_FOLLOWED)
    _explain(sums, trial.pair(*ranks), waits[followed])


def is_long_wait(rows: npt.NDArray[np.void], long_ns: int = LONG_WAIT_NS) -> npt.NDArray[np.bool_]:
    """Return which calls, of dtype CALL, receive or wait for at least ``long_ns``."""
    long = rows["ended_ns"] - rows["began_ns"] >= long_ns
    which: npt.NDArray[np.bool_] = long & np.isin(rows["function"], [_NUMBERS[name] for name in _WAITS])
    return which


def _senders(waits: npt.NDArray[np.void], receiver: int, wire: Wire, sent: Sent) -> Int64:
    """Return the awaited rank of each wait: named, or last to send, or UNKNOWN_RANK."""
    streams = {sender: stream for (sender, to), stream in wire.streams.items() if to == receiver}
    senders, came_ns = np.full(len(waits), UNKNOWN_RANK, np.int64), np.full(len(waits), NEVER)
    if streams:
        times = np.concatenate([stream.time_ns for stream in streams.values()])
        peers = np.repeat(list(streams), [len(stream.time_ns) for stream in streams.values()])
        order = np.argsort(times, kind="stable")
        last = np.searchsorted(times[order], waits["ended_ns"], side="right") - 1
        within = (last >= 0) & (times[order][last] > waits["began_ns"])
        senders = np.where(within, peers[order][last], UNKNOWN_RANK)
        came_ns = np.where(within, times[order][last], NEVER)
    unseen, sent_ns = sent.last_within(waits)
    senders = np.where(sent_ns > came_ns, unseen, senders)
    has_source = waits["source"] >= 0
    named = has_source & np.isin(waits["function"], [_NUMBERS[name] for name in _RECEIVES])
    alone = has_source & np.isin(waits["function"], EXCHANGES) & (senders < 0)
    return np.where(named | alone, waits["source"], senders).astype(np.int64)


def _explain_by_order(
    sums: Sums, trial: _Known, ranks: tuple[int, int], waits: npt.NDArray[np.void], sent: Sent
) -> None:
    """Add waits for a rank without packets, by the order of calls.

    The sender is late until it sent; on one host the remainder is the way through memory.
    """
    one_host = on_one_host(trial.hosts, ranks)
    last, within_ns = sent.last_within(waits)
    taken_ns = sent.taken(waits, ranks[0])
    takes = np.isin(waits["function"], [n for n in (*TAKES, _NUMBERS["Probe"]) if n not in EXCHANGES])
    sent_ns = np.where(takes | (taken_ns > NEVER) | (last != ranks[0]), taken_ns, within_ns)
    is_known = sent_ns > NEVER
    sums.unexplained(*ranks, waits[~is_known], OUT_OF_ORDER if one_host else NO_STREAM)
    waits, sent_ns = waits[is_known], sent_ns[is_known]
    if not len(waits):
        return
    began, ended = waits["began_ns"], waits["ended_ns"]
    came_ns = np.clip(sent_ns, began, ended)
    no_core = trial.cores.outside(ranks[0], began, came_ns)
    at_end = at_its_end(waits["no_core_within_ns"], ended - came_ns) if one_host else np.zeros(len(waits))
    rest_ns = float((ended - came_ns - at_end).sum())
    by_cause = of_causes(
        late_sender=float((came_ns - began - no_core).sum()),
        no_core=float((no_core + at_end).sum()),
        **{"under_way" if one_host else "unknown": rest_ns},
    )
    sums.add(*ranks, len(waits), by_cause)
    sums.why(NO_STREAM, 0.0 if one_host else rest_ns)


def _explain(sums: Sums, pair: Pair, waits: npt.NDArray[np.void]) -> None:
    """Add a pair's waits; the first piece of each begins with the wait."""
    if not len(waits):
        return
    times = pair.stream.time_ns
    first = np.searchsorted(times, waits["began_ns"], side="right")
    behind = np.searchsorted(times, waits["ended_ns"], side="right")
    any_came = behind > first
    all_rows = np.arange(len(times))
    whole, why_whole = pair.pieces(all_rows, times[np.maximum(all_rows - 1, 0)])
    cut, why_cut = pair.pieces(first[any_came], waits["began_ns"][any_came])
    by_cause = cut.sum(axis=0) + _between(whole, first[any_came] + 1, behind[any_came]).sum(axis=0)
    rest = waits["ended_ns"] - np.where(any_came, times[np.maximum(behind - 1, 0)], waits["began_ns"])
    no_core_ns = float(at_its_end(waits["no_core_within_ns"], rest).sum())
    by_cause += of_causes(receiver=float(rest.sum()) - no_core_ns, no_core=no_core_ns)
    for reason, ns in why_cut.items():
        whole_ns = _between(why_whole[reason][:, None], first[any_came] + 1, behind[any_came])
        sums.why(reason, float(ns.sum() + whole_ns.sum()))
    sums.add(pair.sender, pair.receiver, len(waits), by_cause)


def _between(values: npt.NDArray[np.float64], first: Int64, behind: Int64) -> npt.NDArray[np.float64]:
    """Return sums of rows from ``first`` to before ``behind``, (len(first), columns)."""
    before = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
    summed: npt.NDArray[np.float64] = before[np.maximum(first, behind)] - before[first]
    return summed
