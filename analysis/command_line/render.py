"""Plain-text tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from analysis.catalogue import METRICS, SECTION_TITLES, Metric
from analysis.numbers import amount, significant

if TYPE_CHECKING:
    from analysis.capture_analysis import CaptureAnalysis


def cell(value: Any, unit: str) -> str:
    """Format a number with its unit; text stays, None is empty."""
    return "" if value is None else amount(value, unit) if unit else str(value)


def table(rows: Iterable[Sequence[str]], *, right: frozenset[int] = frozenset()) -> str:
    """Align columns of text; ``right`` are the right-aligned ones."""
    lines = [list(row) for row in rows]
    if not lines:
        return ""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def metric_table(analysis: CaptureAnalysis) -> str:
    """Format the metrics of a capture by section, all traffic next to MPI traffic."""
    lines = [("", "all", "MPI")]
    for section, title in SECTION_TITLES.items():
        metrics = [m for m in METRICS.values() if m.section == section and m.id in analysis.metrics]
        if metrics:
            lines += [("", "", ""), (title, "", ""), *(_row(m, analysis) for m in metrics)]
    return table(lines, right=frozenset({1, 2}))


def _row(entry: Metric, analysis: CaptureAnalysis) -> tuple[str, str, str]:
    values = (analysis.metrics[entry.id], analysis.mpi.metrics.get(entry.id))
    whole, mpi = (cell(value, entry.unit) for value in values)
    return f"  {entry.label}", whole, mpi


def fit_table(fits: Iterable[dict[str, Any]]) -> str:
    """Format the fits, best first: parameters, dAIC, KS distance, p-value if computed."""
    lines = [("  family", "parameters", "dAIC", "KS distance", "p")]
    for fit in fits:
        parameters = ", ".join(f"{name} {significant(value)}" for name, value in fit["parameters"].items())
        p_value = significant(fit["p_value"], 3) if "p_value" in fit else ""
        figures = (significant(fit["d_aic"]), significant(fit["ks_distance"]), p_value)
        lines.append((f"  {fit['distribution']}", parameters, *figures))
    return table(lines, right=frozenset({2, 3, 4}))


def missing_table(analysis: CaptureAnalysis) -> str:
    """Format the absent metrics with their reasons."""
    return table((f"  {METRICS[i].label}", reason) for i, reason in analysis.not_available.items() if i in METRICS)
