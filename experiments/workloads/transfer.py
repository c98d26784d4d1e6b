"""Tables and curves of message transfer times, with their figures of merit."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from analysis.conclusions.observations.transfer import fit_transfer
from analysis.numbers import SHARE
from experiments.workloads.base import FigureOfMerit, figures_of


def scaled(printed: str, factor: str) -> float:
    """Return a printed decimal number times ``factor`` without rounding in between."""
    return float(Decimal(printed) * Decimal(factor))


def curve_figures(slug: str, *, curve: str = "") -> tuple[FigureOfMerit, ...]:
    """Return the figures of a curve of sizes; ``curve`` describes its times."""
    figures = figures_of(slug, (
        ("transfer_time_s", "Transfer time", "s", "lower", "Half of a round trip of the largest message."),
        ("bandwidth_Bps", "Bandwidth", "B/s", "higher", "Largest message over its transfer time."),
        ("bandwidth_max_Bps", "Bandwidth, best size", "B/s", "higher", "Largest bandwidth of any message size."),
        ("latency_s", "Latency", "s", "lower", "Half of a round trip of the smallest message."),
        ("fit_latency_s", "Latency, fitted", "s", "lower", f"alpha {_FIT}"),
        ("fit_latency_low_s", "Latency, fitted, lower end", "s", "neutral", f"Lower end of alpha's 95 % interval {_FIT}"),
        ("fit_latency_high_s", "Latency, fitted, upper end", "s", "neutral", f"Upper end of alpha's 95 % interval {_FIT}"),
        ("fit_bandwidth_Bps", "Bandwidth, fitted", "B/s", "higher", f"beta {_FIT}"),
        ("fit_bandwidth_low_Bps", "Bandwidth, fitted, lower end", "B/s", "neutral", f"Lower end of beta's 95 % interval {_FIT}"),
        ("fit_bandwidth_high_Bps", "Bandwidth, fitted, upper end", "B/s", "neutral", f"Upper end of beta's 95 % interval {_FIT}"),
        ("half_bandwidth_bytes", "Half-bandwidth size", "B", "lower", f"Message size that reaches half of beta: alpha x beta {_FIT}"),
        ("half_bandwidth_low_bytes", "Half-bandwidth size, lower end", "B", "neutral", f"Lower end of its 95 % interval {_FIT}"),
        ("half_bandwidth_high_bytes", "Half-bandwidth size, upper end", "B", "neutral", f"Upper end of its 95 % interval {_FIT}"),
        ("fit_residual_share", "Residual of the fit", SHARE, "lower", f"Root mean square of log(t / fit) {_FIT}"),
    ))  # fmt: skip
    return tuple(replace(figure, definition=f"{figure.definition} {curve}".strip()) for figure in figures)


_FIT = "of t = alpha + n/beta over all message sizes (Hockney 1994), least squares of log(t / fit)."


@dataclass(frozen=True, slots=True)
class PrintedTable:
    """A table of an output. ``cells`` are as printed."""

    columns: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]

    def column(self, *names: str) -> list[str] | None:
        """Return the printed cells of the first of ``names`` that the table has."""
        name = next((n for n in names if n in self.columns), None)
        return None if name is None else [row[self.columns.index(name)] for row in self.cells]

    @property
    def largest(self) -> int:
        """Return the index of the row of the largest message."""
        sizes = [int(size) for size in self.column("bytes") or range(len(self.cells))]
        return sizes.index(max(sizes))

    def at_largest(self, *names: str) -> float | None:
        """Return the time (s) of the largest message, from the first known column (µs)."""
        times = self.column(*names)
        return None if times is None else scaled(times[self.largest], "1e-6")

    def curve(self, slug: str, time: str) -> dict[str, float]:
        """Return the figures of the curve of sizes, if the table has both columns."""
        sizes, times = self.column("bytes"), self.column(time)
        if sizes is None or times is None:
            return {}
        return describe_curve(slug, [int(size) for size in sizes], [scaled(cell, "1e-6") for cell in times])

    def rows(self) -> list[dict[str, Any]]:
        """Return the table as the page shows it, numbers as printed."""
        return [
            {name: float(cell) if "." in cell else int(cell) for name, cell in zip(self.columns, row, strict=True)}
            for row in self.cells
        ]


def printed_tables(
    output: str,
    heading: re.Pattern[str],
    columns: re.Pattern[str],
    row: re.Pattern[str],
    names: Callable[[re.Match[str], str], Iterable[str]],
) -> Iterator[tuple[re.Match[str], PrintedTable]]:
    """Yield heading and table of every block; ``names`` gives its columns."""
    headings = list(heading.finditer(output))
    ends = [*(match.start() for match in headings), len(output)][1:]
    for match, end in zip(headings, ends, strict=True):
        header = columns.search(output, match.end(), end)
        if header is None:
            continue
        cells = tuple(tuple(line.split()) for line in row.findall(output[match.end() : end]))
        named = tuple(names(match, header[1]))
        if cells and all(len(line) == len(named) for line in cells):
            yield match, PrintedTable(named, cells)


def curve_of(rows: Sequence[Mapping[str, Any]], time: str, factor: float = 1.0) -> list[tuple[int, float]]:
    """Return (bytes, s) of the rows that have both; ``time`` names the column."""
    pairs: list[tuple[Any, Any]] = [(row.get("bytes"), row.get(time)) for row in rows]
    numbers = [pair for pair in pairs if all(isinstance(value, int | float) and math.isfinite(value) for value in pair)]
    return [(int(size), took * factor) for size, took in numbers]


def describe_curve(slug: str, sizes_bytes: Sequence[int], times_s: Sequence[float]) -> dict[str, float]:
    """Return the figures of transfer times (s) by message size (bytes), in any order."""
    points = sorted(zip(sizes_bytes, times_s, strict=True))
    largest, slowest = points[-1]
    figures = {f"{slug}.transfer_time_s": slowest}
    if largest:
        figures[f"{slug}.bandwidth_Bps"] = largest / slowest
    if len(points) > 1:
        figures[f"{slug}.bandwidth_max_Bps"] = max(n / t for n, t in points)
        figures[f"{slug}.latency_s"] = points[0][1]
    return {**figures, **{f"{slug}.{name}": value for name, value in _fitted(points).items()}}


def _fitted(points: Sequence[tuple[int, float]]) -> Mapping[str, float]:
    try:
        fit = fit_transfer([n for n, _ in points], [t for _, t in points])
    except ValueError:
        return {}  # too few sizes, or times that do not grow with them: there is no such line
    figures = {"fit_residual_share": fit.residual_share}
    for stem, unit, value, (low, high) in (
        ("fit_latency", "s", fit.latency_s, fit.latency_interval_s),
        ("fit_bandwidth", "Bps", fit.bandwidth_Bps, fit.bandwidth_interval_Bps),
        ("half_bandwidth", "bytes", fit.half_bandwidth_bytes, fit.half_bandwidth_interval_bytes),
    ):
        figures |= {f"{stem}_{unit}": value, f"{stem}_low_{unit}": low, f"{stem}_high_{unit}": high}
    return {name: value for name, value in figures.items() if math.isfinite(value)}  # an open end is not a number
