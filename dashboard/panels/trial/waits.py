"""Causes of waiting on a trial's page: a table of pairs and a sentence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from analysis import numbers
from analysis.mpi.wait_sums import ALL_RANKS, UNKNOWN_RANK

_MOST_PAIRS: Final = 12
_FIRST_CAUSE: Final = 3
"""Columns before the causes: sender, receiver, number of waits."""
_LEAST_SHARE: Final = 1e-4
_ALMOST_ALL: Final = 0.9
"""Share of a cause from which on one sender alone is named."""
_CAUSES: Final = {
    "late_sender": (
        "Late sender",
        "The sender's call had not begun, though it had a CPU core; in a collective: the last rank had not arrived",
    ),
    "line_rate": ("Line rate", "Time that the link's rate needs for the frames that passed the two ports meanwhile"),
    "under_way": (
        "In transit",
        "Sent and not arrived while the link was not full: latency and round trips; the whole transfer on links of unknown "
        "rate, within a host and in collectives",
    ),
    "retransmission": ("Lost packets", "Lost bytes, until they were retransmitted"),
    "closed_window": (
        "Closed window",
        "The receiver's TCP window was full: it did not read, or its buffer is too small",
    ),
    "receiver": ("After last packet", "From the last packet to the end of the call"),
    "no_core": (
        "Descheduled",
        "The late sender, or the receiver after the last packet, was runnable without a CPU core",
    ),
    "unknown": ("Not explained", "See the reasons below"),
}
_BECAUSE: Final = {
    "late_sender": "because rank {sender} sends late",
    "line_rate": "because the link from rank {sender} is full",
    "under_way": "for data of rank {sender} in transit",
    "retransmission": "for lost packets of rank {sender}",
    "closed_window": "because the receiver's window was closed between it and rank {sender}",
    "receiver": "after the last packet of rank {sender} arrived",
    "no_core": "because it or rank {sender} had no CPU core",
    "unknown": "for unexplained reasons",
}

_BECAUSE_OF_ALL: Final = {
    "under_way": "in collectives after all packets arrived",
    "no_core": "because it had no CPU core in collectives after all packets arrived",
}


def waits_table(profile: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the context of the waits in a trial's profile; None without any."""
    waits = profile.get("waits")
    if not waits or not set(waits["causes"]) <= set(_CAUSES):
        return None
    hosts = {row["rank"]: row["host"] for row in profile["ranks"]}
    windows_s = {row["rank"]: row["window_s"] for row in profile["ranks"]}
    pairs, causes = waits["pairs"], waits["causes"]
    others = pairs[_MOST_PAIRS:]
    rows = [_row(f"{_name(pair[0])} → {pair[1]}", _hosts(hosts, pair), [pair]) for pair in pairs[:_MOST_PAIRS]]
    rows += [_row(numbers.plural(len(others), "other pair"), "", others)] if others else []
    rows += [_row("All pairs", "", pairs)] if len(pairs) > 1 else []
    return {
        "causes": [{"label": _CAUSES[cause][0], "meaning": _CAUSES[cause][1]} for cause in causes],
        "rows": rows,
        "least": numbers.amount(waits["long_wait_s"], "s"),
        "sentence": _sentence(pairs, causes, windows_s),
        "left_out": waits["pairs_left_out"],
        "reasons": [(reason, numbers.amount(seconds, "s")) for reason, seconds in waits["unknown_s"].items()],
    }


def _name(rank: int) -> str:
    return {UNKNOWN_RANK: "?", ALL_RANKS: "all"}.get(rank) or numbers.grouped(rank)


def _hosts(hosts: Mapping[int, str], pair: Sequence[float]) -> str:
    ends = [hosts.get(int(rank), "") for rank in pair[:2] if rank >= 0]
    return " → ".join(dict.fromkeys(end for end in ends if end))


def _row(name: str, hosts: str, pairs: Sequence[Sequence[float]]) -> dict[str, Any]:
    seconds = [sum(column) for column in zip(*(pair[_FIRST_CAUSE:] for pair in pairs), strict=True)]
    whole_s = sum(seconds)
    return {
        "name": name,
        "hosts": hosts,
        "waits": numbers.Amount.of(sum(pair[2] for pair in pairs), ""),
        "time": numbers.Amount.of(whole_s, "s"),
        "shares": [_share(part_s / whole_s) for part_s in seconds],
    }


def _share(part: float) -> str:
    if not part:
        return numbers.NOTHING
    least = numbers.amount(_LEAST_SHARE, numbers.SHARE)
    return f"< {least}" if part < _LEAST_SHARE else numbers.Amount.of(part, numbers.SHARE)


def _sentence(pairs: Sequence[Sequence[float]], causes: Sequence[str], windows_s: Mapping[int, float]) -> str:
    """Return the sentence on the rank with the most waiting, and its cause."""
    waited_s: dict[int, float] = defaultdict(float)
    for pair in pairs:
        waited_s[int(pair[1])] += sum(pair[_FIRST_CAUSE:])
    shares = {rank: seconds / windows_s[rank] for rank, seconds in waited_s.items() if windows_s.get(rank)}
    if not shares:
        return "No rank waited that long in a receive or collective."
    rank = max(shares, key=lambda number: shares[number])
    whole_s = waited_s[rank]
    of_senders: dict[str, dict[int, float]] = defaultdict(dict)
    for pair in pairs:
        if pair[1] == rank:
            for cause, seconds in zip(causes, pair[_FIRST_CAUSE:], strict=True):
                of_senders[cause][int(pair[0])] = seconds
    cause = max(of_senders, key=lambda name: sum(of_senders[name].values()))
    by_sender, of_cause_s = of_senders[cause], sum(of_senders[cause].values())
    sender = max(by_sender, key=lambda number: by_sender[number])
    because = {UNKNOWN_RANK: _BECAUSE["unknown"], ALL_RANKS: _BECAUSE_OF_ALL.get(cause, _BECAUSE["unknown"])}
    why = because.get(sender, _BECAUSE[cause]).format(sender=_name(sender))
    start = f"Rank {_name(rank)} waits {_two_digits(shares[rank])} of its time,"
    most = _two_digits(by_sender[sender] / whole_s)
    if by_sender[sender] >= _ALMOST_ALL * of_cause_s:
        return f"{start} {most} of it {why}."
    return f"{start} {_two_digits(of_cause_s / whole_s)} of it is “{_CAUSES[cause][0]}”: {most} {why}."


def _two_digits(share: float) -> str:
    return numbers.amount(share, numbers.SHARE, 2)
