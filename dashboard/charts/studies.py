"""Figures of result parts: wall times against load, tuning ladder, phases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analysis.conclusions.observations.ladder import Step
from analysis.numbers import times
from dashboard.charts.fits import Fitted
from dashboard.charts.parts import (
    DASHES,
    MOST_SERIES,
    SERIES,
    SYMBOLS,
    Figure,
    Line,
    Scale,
    axis_title,
    hover,
    level_line,
    skipped_line,
    spread,
    ticks,
)

_REFERENCE = "--ref"


@dataclass(frozen=True, slots=True)
class Loads:
    """One link: (jobs, wall time relative to one job), and the configuration of each."""

    name: str
    ratios: Sequence[tuple[float, float]]
    of: Sequence[int]


@dataclass(frozen=True, slots=True)
class LadderLine:
    """One ladder: its steps, and the configuration of each."""

    name: str
    steps: Sequence[Step]
    of: Sequence[int]


def envelope_chart(lines: Sequence[Loads], *, factor: float, load: str, measured: int) -> Figure:
    """Draw wall time relative to one job over the load, per link.

    The level is the factor of the rule: conditions above it are not acceptable.
    """
    data = [
        _loads(line, index % MOST_SERIES if index < measured else None)
        for index, line in enumerate(lines)
        if len(line.ratios) > 1 and not MOST_SERIES <= index < measured
    ]
    xs = sorted({jobs for line in lines for jobs, _ in line.ratios})
    top = max([factor, *(ratio for line in lines for _, ratio in line.ratios)])
    note = {"x": 0.01, "xref": "paper", "xanchor": "left", "y": factor, "yanchor": "bottom"}
    note["text"] = f"acceptable below {times(factor)}"
    return {
        "data": data,
        "layout": {
            "xaxis": {"title": axis_title(load, ""), **(ticks(xs, xs[0], xs[-1]) if 1 < len(xs) <= 12 else {})},
            "yaxis": {"title": axis_title("Wall time of a job", "relative to one job"), "range": [0, 1.08 * top]},
            "shapes": [level_line("y", factor, color="--mark", width=1.5, dash="dash")],
            "annotations": [note],
        },
    }


def _loads(line: Loads, series: int | None) -> Figure:
    """Return the trace of one link; `series` is None for a published one."""
    colour, dash, symbol, width = _REFERENCE, "dot", "diamond-open", 1.25
    if series is not None:
        colour, dash, symbol, width = SERIES[series], DASHES[series], SYMBOLS[series], 2
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": line.name,
        "x": [jobs for jobs, _ in line.ratios],
        "y": [ratio for _, ratio in line.ratios],
        "of": list(line.of),
        "line": {"color": colour, "width": width, "dash": dash},
        "marker": {"color": colour, "size": 8, "symbol": symbol},
        "hovertemplate": f"{hover('y', '')}×<extra>{line.name}</extra>",
    }


def ladder_chart(ladders: Sequence[LadderLine], *, quantity: str, unit: str) -> Figure:
    """Draw the value of every step and the best so far; measured ladder first."""
    scale = Scale.of([step.value for ladder in ladders for step in ladder.steps], unit)
    data: list[Figure] = []
    bars: Figure = {"type": "bar", "marker": {"color": f"{SERIES[0]}/0.55"}}
    marker = {"color": _REFERENCE, "symbol": "diamond-open", "size": 8}
    marks: Figure = {"type": "scatter", "mode": "markers", "marker": marker}
    for index, ladder in enumerate(ladders):
        numbers = [step.number for step in ladder.steps]
        data.append(
            {
                **(marks if index else bars),
                "name": ladder.name,
                "x": numbers,
                "y": [scale(step.value) for step in ladder.steps],
                "of": list(ladder.of),
                "hovertemplate": f"{hover('y', scale.unit)}<extra>{ladder.name}</extra>",
            }
        )
        if not index:
            best = [scale(step.best_so_far) for step in ladder.steps]
            data.append(skipped_line("Best so far", numbers, best, color=SERIES[0], width=2, shape="hv"))
    rungs = sorted({step.number for ladder in ladders for step in ladder.steps})
    return {
        "data": data,
        "layout": {
            "xaxis": {"title": axis_title("Step", ""), "tickvals": rungs},
            "yaxis": {"title": axis_title(quantity, scale.unit), "rangemode": "tozero"},
        },
    }


def phases_chart(lines: Sequence[Line], curves: Mapping[str, Fitted], *, quantity: str, axis: str) -> Figure:
    """Draw measured times over the nodes, and their equations in the same colour."""
    values = [value for line in lines for trials in line.trials for value in trials]
    scale = Scale.of(values, "s")
    data: list[Figure] = []
    for index, line in enumerate(lines[:MOST_SERIES]):
        _, points = spread(line, scale, index)
        points["mode"] = "markers"
        data.append(points)
        curve = curves.get(line.name)
        if curve is not None:
            colour = SERIES[index % MOST_SERIES]
            data.append(_equation(curve, curve.inside(), scale, {"color": colour, "width": 1.75}, curve.name))
            if len(curve.beyond()) > 1:
                beyond = {"color": colour, "width": 1.5, "dash": "dot"}
                data.append(_equation(curve, curve.beyond(), scale, beyond, f"{curve.name}, not measured"))
    return {
        "data": data,
        "layout": {
            "xaxis": {"title": axis_title(axis, "")},
            "yaxis": {"title": axis_title(quantity, scale.unit), "rangemode": "tozero"},
        },
    }


def _equation(curve: Fitted, at: Sequence[int], scale: Scale, line: Figure, name: str) -> Figure:
    x, y = [curve.x[i] for i in at], [scale(curve.y[i]) for i in at]
    return {**skipped_line(name, x, y, **line), "showlegend": False}
