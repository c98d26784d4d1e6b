"""Why ranks waited: every long receive or wait of a traced run, explained by the packets that ended it. Pure.

A wait is over when its last bytes have come. Who sent them is whom the call names, else the rank whose packet came last. Between
two packets of that stream the wait is split at the moment at which the sender handed over the first bytes of the second: before it the
sender was late; after it bytes were missing (a loss), or on their way, of which the link took what it needs for the frames that it
carried. What follows on the last packet is the receiver's.

Which bytes belong to which message follows from the order: a message begins behind all that was on the wire when its call began,
and behind the message before it.

Where no connection of two ranks is known, the order of their calls tells when the sender sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from analysis.mpi.calls import Calls
from analysis.mpi.collectives import explain_collectives
from analysis.mpi.functions import FUNCTIONS
from analysis.mpi.order import NEVER, Sent
from analysis.mpi.streams import Int64, Stream, Wire
from analysis.mpi.wait_sums import CAUSES, LONG_WAIT_NS, NOBODY, Sums, Waits, of_causes

SILENCE_NS: Final = 190_000_000
"""Nobody who has data is silent for so long, unless what was sent is lost: the shortest retransmission timer of Linux is 200 ms."""
EAGER_BYTES: Final = 65_536
"""Open MPI hands messages up to here to the kernel as a whole; longer ones wait for the receiver."""
HEADER_BYTES: Final = 22
"""What Open MPI's TCP transport puts before a message at least."""
_SLACK_BYTES: Final = 512
_INTO_BYTES: Final = 64
"""So far into a packet its first message is looked up: headers differ by a few bytes."""
CLOCKS_APART_NS: Final = 20_000
"""A call's start, by the processor's counter, may seem to be later than its first packet: 1 to 2 us were seen."""

_RECEIVES: Final = ("Recv", "Probe")
"""Their peer is the sender."""
_WAITS: Final = (
    *_RECEIVES,
    "Mprobe",
    "Mrecv",
    "Sendrecv",
    "Sendrecv_replace",
    "Wait",
    "Waitall",
    "Waitany",
    "Waitsome",
)
_NUMBERS: Final = {function.name: number for number, function in enumerate(FUNCTIONS)}
_SENDS: Final = [
    n for n, f in enumerate(FUNCTIONS) if f.bytes.startswith(("message", "start 0")) and f.kind == "point-to-point"
]
_TO_ALL: Final = [
    n
    for n, f in enumerate(FUNCTIONS)
    if f.kind in ("collective", "synchronisation", "one-sided", "input/output") or f.name == "Startall"
]
"""Calls that may send to anyone, how much is not known."""

NO_PEER: Final = "no packet of another rank came while the rank waited"
NO_STREAM: Final = "no connection between these ranks is in the capture"
OUT_OF_ORDER: Final = (
    "ranks of one host, and which of the sender's messages it was does not follow from the order of calls"
)
NOT_KEPT: Final = "the sender's calls of that time are not in its trace"
NOT_OURS: Final = "the packets belong to no message of the program"
SILENT: Final = "nothing was sent for long though a large message was under way"
NOT_FOLLOWED: Final = "the capture has more packets than are followed"


def explained(
    calls: Calls,
    wire: Wire,
    link_rate_bps: float | None = None,
    long_ns: int = LONG_WAIT_NS,
    hosts: Mapping[int, str] | None = None,
) -> Waits:
    """Explain every wait of at least ``long_ns``, in receives and collectives.

    ``link_rate_bps``: of every host's link; without it nothing is at line rate. ``hosts``: of each rank, as far as they are known.
    """
    sums = Sums()
    for receiver in np.unique(calls.rows["rank"]).tolist():
        own = calls.of(receiver)
        own = own[is_long_wait(own, long_ns)]
        unseen = [rank for rank in calls.left_out if rank != receiver and (rank, receiver) not in wire.streams]
        sent = Sent(calls, receiver, unseen)
        senders = _senders(own, receiver, wire, sent)
        for sender in np.unique(senders).tolist():
            waits = own[senders == sender]
            stream = wire.streams.get((sender, receiver))
            if sender < 0:
                sums.unexplained(NOBODY, receiver, waits, NO_PEER)
            elif stream is None:
                together = bool(hosts and sender in hosts and hosts[sender] == hosts.get(receiver))
                _explain_by_order(sums, (sender, receiver), waits, sent, one_host=together)
            else:
                followed = waits["ended_ns"] <= wire.known_until_ns
                sums.unexplained(sender, receiver, waits[~followed], NOT_FOLLOWED)
                _explain(sums, _Pair(calls, wire, stream, sender, receiver, link_rate_bps), waits[followed])
    explain_collectives(sums, calls, long_ns)
    return sums.result()


def is_long_wait(rows: npt.NDArray[np.void], long_ns: int = LONG_WAIT_NS) -> npt.NDArray[np.bool_]:
    """Return which of these calls, of dtype CALL, are receives or waits of at least ``long_ns``."""
    long = rows["ended_ns"] - rows["began_ns"] >= long_ns
    which: npt.NDArray[np.bool_] = long & np.isin(rows["function"], [_NUMBERS[name] for name in _WAITS])
    return which


def _senders(waits: npt.NDArray[np.void], receiver: int, wire: Wire, sent: Sent) -> Int64:
    """Whom each wait waits for: named by the call, else the rank whose packet or unseen message came last; NOBODY where none came."""
    streams = {sender: stream for (sender, to), stream in wire.streams.items() if to == receiver}
    senders, came_ns = np.full(len(waits), NOBODY, np.int64), np.full(len(waits), NEVER)
    if streams:
        times = np.concatenate([stream.time_ns for stream in streams.values()])
        peers = np.repeat(list(streams), [len(stream.time_ns) for stream in streams.values()])
        order = np.argsort(times, kind="stable")
        last = np.searchsorted(times[order], waits["ended_ns"], side="right") - 1
        within = (last >= 0) & (times[order][last] > waits["began_ns"])
        senders = np.where(within, peers[order][last], NOBODY)
        came_ns = np.where(within, times[order][last], NEVER)
    unseen, sent_ns = sent.last_within(waits)
    senders = np.where(sent_ns > came_ns, unseen, senders)
    named = np.isin(waits["function"], [_NUMBERS[name] for name in _RECEIVES]) & (waits["peer"] >= 0)
    return np.where(named, waits["peer"], senders).astype(np.int64)


def _explain_by_order(
    sums: Sums, pair: tuple[int, int], waits: npt.NDArray[np.void], sent: Sent, *, one_host: bool
) -> None:
    """Add waits for a rank of which no packet is known: late until it sent. The rest, on one host, is the way through memory."""
    _, within_ns = sent.last_within(waits)
    named = np.isin(waits["function"], [_NUMBERS[name] for name in _RECEIVES])
    sent_ns = np.where(named, sent.named(waits, pair[0]), within_ns)
    known = sent_ns > NEVER
    sums.unexplained(*pair, waits[~known], OUT_OF_ORDER if one_host else NO_STREAM)
    began, ended = waits["began_ns"][known], waits["ended_ns"][known]
    late_ns = float((np.clip(sent_ns[known], began, ended) - began).sum())
    rest_ns = float((ended - began).sum()) - late_ns
    if len(began):
        by_cause = of_causes(late_sender=late_ns, **{"under_way" if one_host else "unknown": rest_ns})
        sums.add(*pair, len(began), by_cause)
        sums.why(NO_STREAM, 0.0 if one_host else rest_ns)


class _Pair:
    """A stream, and for each of its packets when the sender handed over its first bytes, for which the receiver waits."""

    def __init__(
        self, calls: Calls, wire: Wire, stream: Stream, sender: int, receiver: int, rate_bps: float | None
    ) -> None:
        self.sender, self.receiver, self.stream = sender, receiver, stream
        self._ports = [wire.ports[port] for port in stream.ports]
        self._rate_bps = rate_bps
        own = calls.of(sender)
        to_all = np.isin(own["function"], _TO_ALL)
        own = own[to_all | (np.isin(own["function"], _SENDS) & (own["peer"] == receiver))]
        to_all = np.isin(own["function"], _TO_ALL)
        size = np.where(to_all, 0, own["bytes"] + HEADER_BYTES)
        queued = np.cumsum(size) - size
        highest = np.concatenate([[0], np.maximum.accumulate(stream.end)])
        on_wire = highest[np.searchsorted(stream.time_ns, own["began_ns"] - CLOCKS_APART_NS)]
        begins = queued + np.maximum.accumulate(on_wire - queued) if len(own) else queued
        first = np.searchsorted(begins, np.minimum(stream.start + _INTO_BYTES, stream.end - 1), side="right") - 1
        self.kept = first >= 0
        self.handed_ns = np.full(len(first), NEVER)
        self.returned_ns, self.eager, self.ours = self.handed_ns, first < -1, first < -1
        if not len(own):
            return
        at = np.maximum(first, 0)
        self.handed_ns = np.where(self.kept, own["began_ns"][at], NEVER)
        self.returned_ns = own["ended_ns"][at]
        self.eager = (size[at] <= EAGER_BYTES + HEADER_BYTES) & ~to_all[at]
        last = np.maximum(np.searchsorted(begins, stream.end - 1, side="right") - 1, 0)
        fits = begins + size + _SLACK_BYTES + size // 64
        self.ours = (begins != on_wire)[last] | to_all[last] | (stream.end <= fits[last])

    def pieces(
        self, rows: Int64, after_ns: Int64
    ) -> tuple[npt.NDArray[np.float64], dict[str, npt.NDArray[np.float64]]]:
        """By cause the time between ``after_ns`` and the packets ``rows``, shape (rows, causes), and what of it is unknown, why."""
        until = self.stream.time_ns[rows]
        handed = np.clip(self.handed_ns[rows], after_ns, until)
        lost = self.stream.lost_until
        lost_before, lost_after = lost(handed) - lost(after_ns), lost(until) - lost(handed)
        late, left = handed - after_ns - lost_before, until - handed - lost_after
        missing = lost_before + lost_after
        quiet_since = np.maximum(self.handed_ns[rows], self.stream.time_ns[np.maximum(rows - 1, 0)])
        silent = until - np.where(rows > 0, quiet_since, self.handed_ns[rows]) >= SILENCE_NS
        sent_whole = self.eager[rows] & (self.returned_ns[rows] <= until - SILENCE_NS)
        missing = missing + np.where(silent & sent_whole, left, 0)
        stuck = np.where(silent & ~sent_whole, left, 0)
        left = np.where(silent, 0, left)
        at_rate = self._at_line_rate(handed, until, left)
        by_cause = np.stack([late, at_rate, left - at_rate, missing, 0 * late, stuck], axis=1).astype(np.float64)
        strange = {
            NOT_KEPT: ~self.kept[rows],
            NOT_OURS: self.kept[rows] & ~self.ours[rows],
        }
        reasons = {SILENT: by_cause[:, -1] * (self.kept & self.ours)[rows]}
        for reason, which in strange.items():
            whole = np.where(which, by_cause[:, [0, 1, 2, 5]].sum(axis=1), 0.0)
            by_cause[which, 0] = by_cause[which, 1] = by_cause[which, 2] = 0.0
            by_cause[:, -1] = np.where(which, whole, by_cause[:, -1])
            reasons[reason] = whole
        return by_cause, reasons

    def _at_line_rate(self, after_ns: Int64, until_ns: Int64, most_ns: Int64) -> npt.NDArray[np.float64]:
        if self._rate_bps is None:
            return np.zeros(len(after_ns))
        carried = np.max([port.between(after_ns, until_ns) for port in self._ports], axis=0)
        at_rate: npt.NDArray[np.float64] = np.minimum(most_ns, 8e9 * carried / self._rate_bps)
        return at_rate


def _explain(sums: Sums, pair: _Pair, waits: npt.NDArray[np.void]) -> None:
    """Add up a pair's waits: the first piece of each is cut where the wait began, the others are whole."""
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
    last_came = np.where(any_came, times[np.maximum(behind - 1, 0)], waits["began_ns"])
    by_cause[CAUSES.index("receiver")] += float((waits["ended_ns"] - last_came).sum())
    for reason, ns in why_cut.items():
        rest = _between(why_whole[reason][:, None], first[any_came] + 1, behind[any_came])
        sums.why(reason, float(ns.sum() + rest.sum()))
    sums.add(pair.sender, pair.receiver, len(waits), by_cause)


def _between(values: npt.NDArray[np.float64], first: Int64, behind: Int64) -> npt.NDArray[np.float64]:
    """The sum of the rows from ``first`` to before ``behind`` of each, shape (len(first), columns)."""
    before = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
    summed: npt.NDArray[np.float64] = before[np.maximum(first, behind)] - before[first]
    return summed
