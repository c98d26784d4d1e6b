"""Figures of the result parts: wall times against load, the tuning ladder, phases over nodes."""

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
    spread,
    ticks,
)

_REFERENCE = "--ref"


@dataclass(frozen=True, slots=True)
class Loads:
    """One link: (jobs, wall time over that of one job), and the configuration of each."""

    name: str
    ratios: Sequence[tuple[float, float]]
    of: Sequence[int]


@dataclass(frozen=True, slots=True)
class Rungs:
    """One ladder: its steps, and the configuration of each."""

    name: str
    steps: Sequence[Step]
    of: Sequence[int]


def envelope_chart(lines: Sequence[Loads], *, factor: float, load: str, measured: int) -> Figure:
    """Wall time against that of one job over the load, per link; the first ``measured`` lines are own ones, the rest published.

    The level is the factor of the rule: above it a condition is not acceptable.
    """
    data: list[Figure] = []
    for index, line in enumerate(lines):
        own = index < measured
        colour = SERIES[index % MOST_SERIES] if own else _REFERENCE
        if len(line.ratios) < 2 or (own and index >= MOST_SERIES):
            continue
        data.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": line.name,
                "x": [jobs for jobs, _ in line.ratios],
                "y": [ratio for _, ratio in line.ratios],
                "of": list(line.of),
                "line": {
                    "color": colour,
                    "width": 2 if own else 1.25,
                    "dash": DASHES[index % MOST_SERIES] if own else "dot",
                },
                "marker": {
                    "color": colour,
                    "size": 8,
                    "symbol": SYMBOLS[index % MOST_SERIES] if own else "diamond-open",
                },
                "hovertemplate": f"{hover('y', '')}×<extra>{line.name}</extra>",
            }
        )
    xs = sorted({jobs for line in lines for jobs, _ in line.ratios})
    top = max([factor, *(ratio for line in lines for _, ratio in line.ratios)])
    return {
        "data": data,
        "layout": {
            "xaxis": {"title": axis_title(load, ""), **(ticks(xs, xs[0], xs[-1]) if 1 < len(xs) <= 12 else {})},
            "yaxis": {"title": axis_title("Wall time of a job", "times that of one"), "range": [0, 1.08 * top]},
            "shapes": [_level(factor)],
            "annotations": [
                {
                    "x": 0.01,
                    "xref": "paper",
                    "xanchor": "left",
                    "y": factor,
                    "yanchor": "bottom",
                    "text": f"acceptable below {times(factor)}",
                }
            ],
        },
    }


def ladder_chart(ladders: Sequence[Rungs], *, quantity: str, unit: str) -> Figure:
    """Value of every step, with the best so far as a stair; the first ladder is the own one."""
    scale = Scale.of([step.value for ladder in ladders for step in ladder.steps], unit)
    data: list[Figure] = []
    for index, ladder in enumerate(ladders):
        colour = SERIES[0] if not index else _REFERENCE
        numbers, values = [step.number for step in ladder.steps], [scale(step.value) for step in ladder.steps]
        data.append(
            {
                "type": "bar" if not index else "scatter",
                "name": ladder.name,
                "x": numbers,
                "y": values,
                "of": list(ladder.of),
                "marker": {"color": f"{colour}/0.55"}
                if not index
                else {"color": colour, "symbol": "diamond-open", "size": 8},
                **({} if not index else {"mode": "markers"}),
                "hovertemplate": f"{hover('y', scale.unit)}<extra>{ladder.name}</extra>",
            }
        )
        if not index:
            data.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "name": "Best so far",
                    "x": numbers,
                    "y": [scale(step.best_so_far) for step in ladder.steps],
                    "line": {"color": colour, "width": 2, "shape": "hv"},
                    "hoverinfo": "skip",
                }
            )
    rungs = sorted({step.number for ladder in ladders for step in ladder.steps})
    return {
        "data": data,
        "layout": {
            "xaxis": {"title": axis_title("Step", ""), "tickvals": rungs},
            "yaxis": {"title": axis_title(quantity, scale.unit), "rangemode": "tozero"},
        },
    }


def phases_chart(lines: Sequence[Line], curves: Mapping[str, Fitted], *, quantity: str, axis: str) -> Figure:
    """Measured times over the nodes with their equations: in the line's colour, dotted beyond what was measured."""
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
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "showlegend": False,
        "x": [curve.x[i] for i in at],
        "y": [scale(curve.y[i]) for i in at],
        "line": line,
        "hoverinfo": "skip",
    }


def _level(y: float) -> Figure:
    return {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": y,
        "y1": y,
        "line": {"color": "--mark", "width": 1.5, "dash": "dash"},
    }
