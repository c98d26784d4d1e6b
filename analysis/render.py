"""Numbers for readers: SI prefixes, units, plain-text tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from analysis.catalogue import METRICS, SECTION_TITLES, Metric

if TYPE_CHECKING:
    from analysis.capture_analysis import CaptureAnalysis

_LARGE: Final = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_SMALL: Final = ((1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))


def quantity(value: float, unit: str) -> str:
    """``value`` with four significant digits and its unit: "1.234 MB/s", "12.3 µs"; whole numbers keep every digit."""
    if unit == "1":
        return f"{value:,}".replace(",", " ") if isinstance(value, int) else f"{value:.4g}"
    if unit == "packets/s":
        return f"{value:,.0f} packets/s".replace(",", " ")
    if unit == "s":
        scale, prefix = next((pair for pair in _SMALL if abs(value) >= pair[0]), _SMALL[-1] if value else _SMALL[0])
        return f"{value / scale:.4g} {prefix}s"
    scale, prefix = next((pair for pair in _LARGE if abs(value) >= pair[0]), (1.0, ""))
    number = f"{value:,}".replace(",", " ") if prefix == "" and isinstance(value, int) else f"{value / scale:.4g}"
    return f"{number} {prefix}{unit}"


def cell(value: Any, unit: str) -> str:
    """A number with its unit, text as it is, nothing for None."""
    return "" if value is None else quantity(value, unit) if unit else str(value)


def table(rows: Iterable[Sequence[str]], *, right: frozenset[int] = frozenset()) -> str:
    """Columns of text, as wide as they need; ``right`` names the columns that hold numbers."""
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
    """Every number of the catalogue that the capture holds, by section, all traffic beside MPI traffic."""
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
    """Families best first: parameters, dAIC, KS distance, p-value when it was asked for."""
    lines = [("  family", "parameters", "dAIC", "KS distance", "p")]
    for fit in fits:
        parameters = ", ".join(f"{name} {value:.4g}" for name, value in fit["parameters"].items())
        p_value = f"{fit['p_value']:.3g}" if "p_value" in fit else ""
        row = (f"  {fit['distribution']}", parameters, f"{fit['d_aic']:.4g}", f"{fit['ks_distance']:.4f}", p_value)
        lines.append(row)
    return table(lines, right=frozenset({2, 3, 4}))


def missing_table(analysis: CaptureAnalysis) -> str:
    """What is not available, and why."""
    return table((f"  {METRICS[i].label}", reason) for i, reason in analysis.not_available.items() if i in METRICS)
