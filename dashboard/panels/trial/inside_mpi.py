"""Time inside MPI on a trial's page: ranks, functions, message sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from analysis import numbers
from analysis.mpi.placement import machines_of
from dashboard.charts.parts import descheduled_note
from dashboard.charts.ranks import inside_over_time, message_sizes, requested_matrix, time_per_rank
from dashboard.panels.trial.between import between_address
from dashboard.panels.trial.placement import placement
from dashboard.panels.trial.rank_counters import rank_counters
from dashboard.panels.trial.rank_files import rank_files
from dashboard.panels.trial.waits import waits_table
from experiments.files import MPI_CALLS_NAME, read_analysis, read_mpi_profile
from experiments.models import Trial

_MOST_PAIRS: Final = 12
_ONE_HOST: Final = "one host"
_NOT_TOLD: Final = "–"


def messages_by_pair(
    profile: Mapping[str, Any], analysis: Mapping[str, Any] | None, *, leads: str = ""
) -> dict[str, Any]:
    """Return the message matrix of a profile and its largest pairs.

    With the bytes on the network if its ranks are known. ``leads``: target addresses of packets from rank to
    rank.
    """
    hosts = {row["rank"]: row["host"] for row in profile["ranks"]}
    matrix = ((analysis or {}).get("matrices") or {}).get("ranks") or {}
    wire = _wire_bytes(matrix)
    pairs = profile["pairs"]
    return {
        "figure": requested_matrix(pairs, leads=leads if wire else ""),
        "rows": [_row(pair, hosts, wire) for pair in pairs[:_MOST_PAIRS]],
        "others": max(0, len(pairs) - _MOST_PAIRS) + profile["pairs_left_out"],
        "has_wire": bool(wire),
        "by_host_alone": matrix.get("by_host_alone") or "",
    }


def _wire_bytes(matrix: Mapping[str, Any]) -> dict[tuple[str, str], float]:
    labels = [str(label) for label in matrix.get("labels") or []]
    return {
        (source, target): value
        for source, row in zip(labels, matrix.get("wire_bytes") or [], strict=False)
        for target, value in zip(labels, row, strict=False)
    }


def _row(pair: Sequence[int], hosts: Mapping[int, str], wire: Mapping[tuple[str, str], float]) -> dict[str, Any]:
    source, target, messages, size = pair
    carried = wire.get((str(source), str(target)))
    together = hosts.get(source) == hosts.get(target)
    return {
        "name": f"{numbers.grouped(source)} → {numbers.grouped(target)}",
        "hosts": " → ".join(dict.fromkeys(filter(None, (hosts.get(source, ""), hosts.get(target, ""))))),
        "messages": numbers.Amount.of(messages, ""),
        "bytes": numbers.Amount.of(size, "B") if size else numbers.NOTHING,
        "wire": _ONE_HOST if together else numbers.Amount.of(carried, "B") if carried else _NOT_TOLD,
    }


_MOST_FUNCTIONS: Final = 12
_FAILED_END: Final = {"killed": "was ended", "abort": "called MPI_Abort", "exit": "ended without MPI_Finalize"}


def inside_mpi(trial: Trial, *, has_packets: bool = False) -> dict[str, Any] | None:
    """Return the context of a trial's profile; None without one."""
    profile = read_mpi_profile(trial)
    if profile is None or profile.get("format") != 1:
        return None
    ranks = profile["ranks"]
    window_s = sum(rank["window_s"] for rank in ranks) or 1.0
    functions = profile["functions"]
    other, per_rank = functions[_MOST_FUNCTIONS:], time_per_rank(ranks)
    return {
        "ranks": numbers.plural(len(ranks), "rank"),
        "per_rank": per_rank,
        "note": descheduled_note(per_rank),
        "functions": [_function(row, window_s, len(ranks)) for row in functions[:_MOST_FUNCTIONS]],
        "total": _total(functions, window_s),
        "other_functions": _others(other, window_s),
        "sizes": message_sizes(profile["sizes"]),
        "over_time": inside_over_time(profile["inside"], ranks[0].get("began_s")),
        "messages": messages_by_pair(
            profile, read_analysis(trial), leads=between_address(trial.pk, "rank") if has_packets else ""
        ),
        "threads": sum(rank["calls_of_other_threads"] for rank in ranks),
        "waits": waits_table(profile),
        "placement": placement(profile, trial.conditions),
        "files": rank_files(ranks),
        "counters": rank_counters(ranks, trial.not_available, machines_of(profile.get("machines", []))),
        "has_calls": trial.artifacts.filter(name=MPI_CALLS_NAME, removed_at=None).exists(),
        "ends": [_end(rank) for rank in ranks if rank["end"] in _FAILED_END],
    }


def _function(row: Mapping[str, Any], window_s: float, ranks: int) -> dict[str, Any]:
    return {
        "name": row["name"],
        "time": numbers.Amount.of(row["seconds"], "s"),
        "share": numbers.Amount.of(row["seconds"] / window_s, numbers.SHARE),
        "calls": numbers.Amount.of(row["calls"], ""),
        "per_call": numbers.Amount.of(row["seconds"] / (row["calls"] or 1), "s"),
        "longest": numbers.Amount.of(row["longest_s"], "s"),
        "bytes": numbers.Amount.of(row["bytes"], "B") if row["bytes"] else numbers.NOTHING,
        "max_rank": numbers.grouped(row["max_rank"]) if ranks > 1 else "",
    }


def _total(rows: Sequence[Mapping[str, Any]], window_s: float) -> dict[str, Any]:
    """Return the sum of all functions, also of those below the table."""
    sums = {name: sum(row[name] for row in rows) for name in ("seconds", "calls", "bytes")}
    longest_s = max((row["longest_s"] for row in rows), default=0.0)
    return _function({"name": "", "longest_s": longest_s, "max_rank": 0, **sums}, window_s, ranks=1)


def _others(rows: list[Mapping[str, Any]], window_s: float) -> str:
    if not rows:
        return ""
    seconds = sum(row["seconds"] for row in rows)
    share = numbers.amount(seconds / window_s, numbers.SHARE)
    return f"{numbers.plural(len(rows), 'other function')}: {numbers.amount(seconds, 's')}, {share}"


def _end(rank: Mapping[str, Any]) -> str:
    inside = f" inside MPI_{rank['inside']}" if rank["inside"] else ""
    return f"Rank {numbers.grouped(rank['rank'])} {_FAILED_END[rank['end']]}{inside}"
