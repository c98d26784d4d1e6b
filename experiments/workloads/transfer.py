"""Curves of message transfer times, with their figures of merit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from analysis.conclusions.observations.transfer import fit_transfer
from analysis.numbers import SHARE
from experiments.workloads.base import FigureOfMerit, figures_of
from experiments.workloads.outputs import Figure, Table


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


def curve_of(rows: Sequence[Mapping[str, Any]], time: str, factor: float = 1.0) -> list[tuple[int, float]]:
    """Return (bytes, s) of the rows that have both; ``time`` names the column."""
    pairs: list[tuple[Any, Any]] = [(row.get("bytes"), row.get(time)) for row in rows]
    numbers = [pair for pair in pairs if all(isinstance(value, int | float) and math.isfinite(value) for value in pair)]
    return [(int(size), took * factor) for size, took in numbers]


def describe_curve(slug: str, sizes_bytes: Sequence[Figure], times_s: Sequence[Figure]) -> dict[str, float]:
    """Return the figures of transfer times (s) by message size (bytes), in any order.

    Raise OutputError for a time of 0.
    """
    points = sorted((int(size), time) for size, time in zip(sizes_bytes, times_s, strict=True))
    for _, time in points:
        if time <= 0:
            raise time.lines[0].refused(f"a transfer takes no time of {time:g}")
    largest, slowest = points[-1]
    figures = {f"{slug}.transfer_time_s": slowest}
    if largest:
        figures[f"{slug}.bandwidth_Bps"] = slowest.to(largest / slowest)
    if len(points) > 1:
        figures[f"{slug}.bandwidth_max_Bps"] = max(t.to(n / t) for n, t in points)
        figures[f"{slug}.latency_s"] = points[0][1]
    return {**figures, **{f"{slug}.{name}": value for name, value in _fitted(points).items()}}


def table_figures(slug: str, table: Table, *, with_curve: bool) -> dict[str, float]:
    """Return the times (s) of the largest message, and the curve of sizes of a ping-pong."""
    columns = {"": ("t_usec", "t_avg_usec", "t_overall_usec"), "_min": ("t_min_usec",), "_max": ("t_max_usec",)}
    times = {f"{slug}.time{which}_s": table.at_largest(*names, factor="1e-6") for which, names in columns.items()}
    figures: dict[str, float] = {name: time for name, time in times.items() if time is not None}
    curve = table.column("t_usec", factor="1e-6") if with_curve and table.sizes else []
    return figures | (describe_curve(slug, table.sizes, curve) if curve else {})


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
