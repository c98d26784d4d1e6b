"""Time of the ranks by size: POP efficiencies and time shares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any, Final

from analysis import numbers
from analysis.mpi.efficiencies import ATTENTION
from dashboard.charts.parts import MOST_SERIES, Figure, Line
from dashboard.charts.scaling import efficiency
from dashboard.labels import parameters_sentence
from dashboard.panels.experiment.scaling import DESCHEDULED_IN_MPI, OFF_IN_MPI
from dashboard.panels.parts import efficiencies
from dashboard.panels.parts.efficiencies import COST, SHARES, WINDOW, Branch, Tree, efficiency_trees, metric_branch
from dashboard.panels.parts.measured import Measured
from experiments import workloads
from experiments.selectors import ConfigurationRow, swept_parameters

POOR: Final = 0.6
"""Below it an efficiency is poor; below ATTENTION it needs attention."""
_LEAST: Final = 1e-4
_MOST_TABLES: Final = 6
_IN_MPI: Final = (efficiencies.COMMUNICATION, efficiencies.SERIALISATION)
"""Efficiencies that fall if ranks wait in MPI for a core, too."""
_MOST_POINTS: Final = 100
"""Combinations of one size share one table."""


def inside_mpi_part(measured: Measured, _targets: Mapping[str, str]) -> dict[str, Any] | None:
    """Return a table per combination, or one of all; None without profiles."""
    trees = efficiency_trees(measured)
    if not trees:
        return None
    rows = [row for tree in trees for row in tree.rows]
    is_one_table = len(trees) > 1 and all(len(tree.rows) == 1 for tree in trees)
    most = _MOST_POINTS if is_one_table else _MOST_TABLES
    tables = [_table(number, tree) for number, tree in enumerate(trees[:most], start=1)]
    workload = workloads.find(measured.main.experiment.workload)
    sends_only = workload is not None and workload.work_grows
    for line in (line for table in tables for line in table["lines"] if sends_only):
        line["cells"] = [{**cell, "tone": ""} for cell in line["cells"]]
    lines = {line["name"]: line for table in tables for line in (*table["lines"], *table["shares"])}
    return {
        "tables": [] if is_one_table else tables,
        "points": _points(tables, list(lines)) if is_one_table else None,
        "size": _size_of_all(tables) if is_one_table else "",
        "definitions": list(lines.values()),
        "left_out": max(0, len(trees) - most),
        "ideal": any(row.values.get(efficiencies.TRANSFER) for row in rows),
        "attention": numbers.amount(ATTENTION, numbers.SHARE),
        "poor": numbers.amount(POOR, numbers.SHARE),
        "lacks_cores": any("note" in cell for table in tables for line in table["lines"] for cell in line["cells"]),
        "cost": _largest(rows, COST),
        "sends_only": sends_only,
    }


def _table(number: int, tree: Tree) -> dict[str, Any]:
    names = swept_parameters(tree.rows)
    same_hosts = len({row.hosts for row in tree.rows}) < len(tree.rows)
    sizes = [
        parameters_sentence(row.parameters, names) if same_hosts else numbers.plural(row.hosts, "host")
        for row in tree.rows
    ]
    lines = [_line(branch, _cell) for branch in tree.branches]
    for line in (line for line in lines if line["name"] in _IN_MPI):
        for cell, row in zip(line["cells"], tree.rows, strict=True):
            if _lacks_cores(row) and cell["tone"]:
                cell |= {"tone": "", "note": "no free core"}
    below = (*((metric, _share) for metric in SHARES), (COST, _small_share), (WINDOW, _seconds))
    shares = [_line(metric_branch(0, metric, tree.rows), cell) for metric, cell in below]
    return {
        "name": tree.name,
        "columns": [
            {"size": size, "ranks": numbers.plural(row.ranks, "rank")}
            for size, row in zip(sizes, tree.rows, strict=True)
        ],
        "lines": [line for line in lines if _is_measured(line)],
        "shares": [line for line in shares if _is_measured(line)],
        "element": f"efficiencies-{number}",
        "chart": _chart(tree),
    }


def _lacks_cores(row: ConfigurationRow) -> bool:
    """Return True if ranks were descheduled for most of their time in MPI."""
    on_cpu, off, descheduled = (
        row.median(metric) or 0.0 for metric in ("mpi_on_cpu_share", OFF_IN_MPI, DESCHEDULED_IN_MPI)
    )
    return 2 * descheduled > on_cpu + off


def _is_measured(line: Mapping[str, Any]) -> bool:
    return any(cell["value"] != numbers.NOTHING for cell in line["cells"])


def _points(tables: Sequence[Mapping[str, Any]], names: Sequence[str]) -> list[dict[str, Any]]:
    rows, same_size = [], _size_of_all(tables)
    for table in tables:
        cells = {line["name"]: line["cells"][0] for line in (*table["lines"], *table["shares"])}
        size = "" if same_size else _size(table)
        rows.append({"name": table["name"], "size": size, "cells": [cells.get(name, _cell(())) for name in names]})
    return rows


def _size_of_all(tables: Sequence[Mapping[str, Any]]) -> str:
    sizes = set(map(_size, tables))
    return sizes.pop() if len(sizes) == 1 else ""


def _size(table: Mapping[str, Any]) -> str:
    return f"{table['columns'][0]['size']}, {table['columns'][0]['ranks']}"


def _chart(tree: Tree) -> Figure | None:
    """Return the tree over the ranks; None if they do not distinguish sizes."""
    if len(tree.rows) < 2 or not tree.sizes_differ:
        return None
    branches = [branch for branch in tree.branches if any(branch.values)]
    if any(branch.name == efficiencies.TRANSFER for branch in branches):
        branches = [branch for branch in branches if branch.name != efficiencies.COMMUNICATION]
    lines = [_drawn(branch, tree.rows) for branch in branches]
    return efficiency(lines[:MOST_SERIES], over="Ranks", guide=(ATTENTION, ""))


def _drawn(branch: Branch, rows: Sequence[ConfigurationRow]) -> Line:
    trials = [row.trial_ids.get(branch.name, []) for row in rows]
    ids = trials if [len(keys) for keys in trials] == [len(values) for values in branch.values] else ()
    return Line(branch.label, [row.ranks for row in rows], branch.values, of=[row.pk for row in rows], ids=ids)


_STEPS: Final = ("", "deep-1", "deep-2", "deep-3")
"""Return the indentation of a line of the tree by depth."""


def _line(branch: Branch, cell: Callable[[Sequence[float]], dict[str, str]]) -> dict[str, Any]:
    return {
        "name": branch.name,
        "step": _STEPS[branch.depth],
        "label": branch.label,
        "definition": branch.definition,
        "cells": [cell(values) for values in branch.values],
    }


def _cell(values: Sequence[float], digits: int | None = None) -> dict[str, str]:
    if not values:
        return {"value": numbers.NOTHING, "spread": "", "tone": ""}
    middle = median(values)
    return {
        "value": _share_words(middle, digits),
        "spread": _spread(values),
        "tone": "ok" if middle >= ATTENTION else "warn" if middle >= POOR else "bad",
    }


def _share(values: Sequence[float]) -> dict[str, str]:
    return {**_cell(values), "tone": ""}


def _small_share(values: Sequence[float]) -> dict[str, str]:
    return {**_cell(values, digits=2), "tone": ""}


def _seconds(values: Sequence[float]) -> dict[str, str]:
    return {"value": numbers.amount(median(values) if values else None, "s"), "spread": "", "tone": ""}


def _spread(values: Sequence[float]) -> str:
    if len(values) < 2:
        return ""
    return f"± {numbers.amount(round((max(values) - min(values)) / 2, 4), numbers.SHARE, 2)}"


def _share_words(share: float, digits: int | None) -> str:
    """Return a share as text: two decimals of a per cent suffice."""
    if 0 < share < _LEAST:
        return f"< {numbers.amount(_LEAST, numbers.SHARE)}"
    return numbers.amount(round(share, 4), numbers.SHARE, digits)


def _largest(rows: Sequence[ConfigurationRow], metric: str) -> str:
    values = [value for row in rows for value in row.values.get(metric, ())]
    return numbers.amount(max(values), numbers.SHARE, 2) if values else ""
