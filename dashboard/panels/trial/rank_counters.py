"""Counters of each rank outside MPI, as a table of the trial's page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from analysis import numbers
from analysis.catalogue import METRICS
from analysis.mpi.counters import CPU_TIME
from analysis.mpi.counters import METRICS as OF_RANKS
from analysis.mpi.placement import Machine, sharing_ranks
from dashboard.charts.parts import Figure
from dashboard.charts.ranks import dot_per_rank
from dashboard.panels.trial.placement import MOST_ROWS

_MISSES_PER: Final = 1000


def rank_counters(
    ranks: Sequence[Mapping[str, Any]], absent: Mapping[str, str], machines: Sequence[Machine] = ()
) -> dict[str, Any] | None:
    """Return rows of counted ranks, and why metrics are absent; None of older trials.

    ``absent``: reasons by metric; ``machines``: of the trial, for the ranks that share cores.
    """
    if not any("counters" in rank for rank in ranks):
        return None
    counted = [rank for rank in ranks if rank.get("counters", {}).get(CPU_TIME)]
    reasons: dict[str, list[str]] = {}
    for metric in OF_RANKS:
        if metric in absent:
            reasons.setdefault(absent[metric], []).append(METRICS[metric].label)
    return {
        "rows": [_row(rank, rank["counters"]) for rank in counted[:MOST_ROWS]],
        "has_hardware": any("instructions" in rank["counters"] or "cycles" in rank["counters"] for rank in counted),
        "views": _views(counted, sharing_ranks(ranks, machines)),
        "rows_left_out": max(0, len(counted) - MOST_ROWS),
        "absent": [{"labels": ", ".join(labels), "reason": reason} for reason, labels in reasons.items()],
    }


def _views(ranks: Sequence[Mapping[str, Any]], sharing: frozenset[int]) -> list[tuple[str, Figure]]:
    """Return charts of IPC and clock, one dot for each rank that has them."""
    quantities = {
        "IPC": ("Instructions per cycle", "", "instructions", "cycles"),
        "Frequency": ("Clock", "Hz", "cycles", CPU_TIME),
    }
    views = []
    for name, (quantity, unit, over, under) in quantities.items():
        rows = [rank for rank in ranks if rank["counters"].get(over) and rank["counters"].get(under)]
        if len(rows) > 1:
            values = [rank["counters"][over] / rank["counters"][under] for rank in rows]
            numbers_of, hosts = [int(rank["rank"]) for rank in rows], [str(rank["host"]) for rank in rows]
            figure = dot_per_rank(numbers_of, hosts, values, quantity=quantity, unit=unit, sharing=sharing)
            views.append((name, figure))
    return views


def _row(rank: Mapping[str, Any], counters: Mapping[str, float]) -> dict[str, Any]:
    instructions, cycles, cpu_s = (counters.get(name) for name in ("instructions", "cycles", CPU_TIME))
    misses = counters.get("cache_misses")
    values = {
        "cpu": (cpu_s, "s"),
        "instructions": (instructions, ""),
        "ipc": (instructions / cycles if instructions and cycles else None, ""),
        "frequency": (cycles / cpu_s if cycles and cpu_s else None, "Hz"),
        "misses": (misses / instructions * _MISSES_PER if misses is not None and instructions else None, ""),
        "faults": (counters.get("page_faults"), ""),
        "share": (counters["counted_share"], numbers.SHARE),
    }
    return {
        "rank": numbers.grouped(rank["rank"]),
        "host": rank["host"],
        **{
            name: numbers.Amount.of(value, unit) if value is not None else numbers.NOTHING
            for name, (value, unit) in values.items()
        },
    }
