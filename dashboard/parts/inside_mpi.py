"""Where the time of the ranks went, by size: the efficiencies of the POP project and the four shares of their windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from analysis import numbers
from analysis.mpi.efficiencies import ATTENTION, Size, scaled
from dashboard.experiment.axes import groups_beside
from dashboard.labels import parameters_sentence
from dashboard.parts.measured import Measured, swept
from experiments.metrics import find
from experiments.selectors import ConfigurationRow

POOR: Final = 0.6
"""Below it an efficiency is the first to act on; between it and ATTENTION it is looked at more closely."""
_MOST_TABLES: Final = 6
_EFFICIENCIES: Final = (
    (1, "mpi_parallel_efficiency"),
    (2, "mpi_load_balance"),
    (2, "mpi_communication_efficiency"),
    (3, "mpi_serialisation_efficiency"),
    (3, "mpi_transfer_efficiency"),
)
"""(depth in the tree, metric): each is the product of those one step deeper below it."""
_SHARES: Final = ("mpi_useful_share", "mpi_no_core_share", "mpi_on_cpu_share", "mpi_blocked_share")
_WINDOW: Final = "mpi_window_s"
_COST: Final = "mpi_profile_cost_share"


def inside_mpi_part(measured: Measured, _asked: Mapping[str, str]) -> dict[str, Any] | None:
    """Return a table per combination of the other swept parameters, sizes as columns; None where no trial left a profile."""
    rows = measured.own.with_metric(_WINDOW)
    if not rows or measured.own.experiment.published:
        return None
    names = swept(measured.own.rows)
    groups = groups_beside(rows, names, "hosts")
    weak = measured.own.experiment.specification.get("scaling") == "weak"
    return {
        "tables": [_table(name, group, weak=weak) for name, group in list(groups.items())[:_MOST_TABLES]],
        "left_out": max(0, len(groups) - _MOST_TABLES),
        "ideal": any(row.values.get("mpi_transfer_efficiency") for row in rows),
        "attention": numbers.amount(ATTENTION, numbers.SHARE),
        "poor": numbers.amount(POOR, numbers.SHARE),
        "cost": _largest(rows, _COST),
    }


def _table(name: str, rows: Sequence[ConfigurationRow], *, weak: bool) -> dict[str, Any]:
    ordered = sorted(rows, key=lambda row: (row.ranks, row.hosts))
    alike = len({row.hosts for row in ordered}) < len(ordered)
    wholes = _scaled(ordered, weak=weak)
    lines = [_line(0, "Global efficiency", _GLOBAL, [_cell([whole]) for whole, _ in wholes])]
    lines += [_metric_line(depth, metric, ordered, _cell) for depth, metric in _EFFICIENCIES]
    lines.append(_line(1, "Computation scalability", _COMPUTATION, [_cell([grown]) for _, grown in wholes]))
    return {
        "name": name,
        "columns": [
            {
                "size": parameters_sentence(row.parameters, swept(ordered))
                if alike
                else numbers.plural(row.hosts, "host"),
                "ranks": numbers.plural(row.ranks, "rank"),
            }
            for row in ordered
        ],
        "lines": [line for line in lines if any(cell["value"] != numbers.NOTHING for cell in line["cells"])],
        "shares": [_metric_line(0, metric, ordered, _share) for metric in _SHARES],
        "window": _metric_line(0, _WINDOW, ordered, _seconds),
    }


_GLOBAL: Final = "Parallel efficiency × computation scalability."
_COMPUTATION: Final = "Useful time of all ranks at the smallest size / here: below 100 % the work itself grew."


def _scaled(rows: Sequence[ConfigurationRow], *, weak: bool) -> list[tuple[float | None, float | None]]:
    """(global efficiency, computation scalability) of each row; nothing to compare with where there is one size."""
    sizes = [
        Size(row.ranks, row.median("mpi_useful_s") or 0.0, row.median("mpi_parallel_efficiency") or 0.0) for row in rows
    ]
    if len({size.ranks for size in sizes}) < len(sizes) or len(sizes) < 2 or not sizes[0].useful_s:
        return [(None, None)] * len(rows)
    return [(each.whole, each.computation) for each in scaled(sizes, weak=weak)]


_STEPS: Final = ("", "deep-1", "deep-2", "deep-3")
"""How a line of the tree is set in, by its depth."""


def _metric_line(
    depth: int, metric: str, rows: Sequence[ConfigurationRow], cell: Callable[[Sequence[float]], dict[str, str]]
) -> dict[str, Any]:
    description = find(metric)
    return _line(depth, description.label, description.definition, [cell(row.values.get(metric, ())) for row in rows])


def _line(depth: int, label: str, definition: str, cells: Sequence[dict[str, str]]) -> dict[str, Any]:
    return {"step": _STEPS[depth], "label": label, "definition": definition, "cells": cells}


def _cell(values: Sequence[float | None]) -> dict[str, str]:
    """An efficiency with half its range, coloured by how much it asks for attention."""
    known = sorted(value for value in values if value is not None)
    if not known:
        return {"value": numbers.NOTHING, "spread": "", "tone": ""}
    middle = _median(known)
    return {
        "value": numbers.amount(middle, numbers.SHARE),
        "spread": _spread(known),
        "tone": "ok" if middle >= ATTENTION else "warn" if middle >= POOR else "bad",
    }


def _share(values: Sequence[float]) -> dict[str, str]:
    return {**_cell(list(values)), "tone": ""}


def _seconds(values: Sequence[float]) -> dict[str, str]:
    known = sorted(values)
    return {"value": numbers.amount(_median(known) if known else None, "s"), "spread": "", "tone": ""}


def _median(values: Sequence[float]) -> float:
    half = len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2


def _spread(values: Sequence[float]) -> str:
    if len(values) < 2:
        return ""
    return f"± {numbers.amount((values[-1] - values[0]) / 2, numbers.SHARE, 2)}"


def _largest(rows: Sequence[ConfigurationRow], metric: str) -> str:
    values = [value for row in rows for value in row.values.get(metric, ())]
    return numbers.amount(max(values), numbers.SHARE, 2) if values else ""
