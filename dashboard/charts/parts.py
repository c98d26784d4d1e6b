"""The parts of a figure. Colours are tokens of static/rankwire.css; static/charts.js resolves and themes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from analysis.numbers import HOVER, with_unit
from analysis.numbers import Scale as Scale

Figure = dict[str, Any]
X = float | str

SERIES = ("--s1", "--s2", "--s3", "--s4", "--s5", "--s6")
SYMBOLS = ("circle", "square", "triangle-up", "diamond", "cross", "x")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
MOST_SERIES = len(SERIES)


@dataclass(frozen=True, slots=True)
class Line:
    """Measured values over x: `trials[i]` holds every repetition's value at `x[i]`, in the base unit."""

    name: str
    x: Sequence[X]
    trials: Sequence[Sequence[float]]


@dataclass(frozen=True, slots=True)
class Published:
    """Values from elsewhere over x, in the base unit."""

    name: str
    x: Sequence[X]
    y: Sequence[float]
    legend: bool = True


def hover(place: str, unit: str) -> str:
    """A value of a hover text with its unit; `place` is Plotly's name for it, such as y."""
    return with_unit(f"%{{{place}:{HOVER}}}", unit)


def hover_range(unit: str) -> str:
    """A median with lowest, highest and number of values out of customdata."""
    return f"{hover('y', unit)}  [{hover('customdata[0]', '')} to {hover('customdata[1]', '')}], n=%{{customdata[2]}}"


def axis_title(quantity: str, unit: str) -> dict[str, str]:
    """'Quantity (unit)'."""
    return {"text": f"{quantity} ({unit})" if unit else quantity}


def heat(x: Sequence[Any], y: Sequence[str], z: Sequence[Sequence[float | None]], *, name: str, unit: str) -> Figure:
    """The trace of a heat map whose colours begin at 0 and whose bar names the unit; None stays empty."""
    return {
        "type": "heatmap",
        "name": name,
        "x": list(x),
        "y": list(y),
        "z": [list(row) for row in z],
        "zmin": 0,
        "colorscale": "--seq",
        "hoverongaps": False,
        "colorbar": {
            "title": {"text": unit, "side": "top", "font": {"size": 12, "color": "--ink-2"}},
            "thickness": 10,
            "outlinewidth": 0,
            "tickfont": {"size": 12, "color": "--ink-2"},
        },
    }


def spread(line: Line, scale: Scale, index: int) -> list[Figure]:
    """The traces of one measured series: every trial as a dot, a line through the medians, the full range as bar.

    Never a bare line (design notes). `index` fixes colour, marker and dash.
    """
    kept = [(x, sorted(map(scale, values))) for x, values in zip(line.x, line.trials, strict=True) if values]
    return [_dots(line.name, kept, index), _medians(line.name, kept, scale.unit, index)]


def _dots(name: str, kept: Sequence[tuple[X, list[float]]], index: int) -> Figure:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"{name}, trials",
        "showlegend": False,
        "hoverinfo": "skip",
        "x": [x for x, values in kept for _ in values],
        "y": [value for _, values in kept for value in values],
        "marker": {"size": 6, "color": f"{SERIES[index % MOST_SERIES]}/0.45"},
    }


def _medians(name: str, kept: Sequence[tuple[X, list[float]]], unit: str, index: int) -> Figure:
    colour, symbol = SERIES[index % MOST_SERIES], SYMBOLS[index % MOST_SERIES]
    middle = [median(values) for _, values in kept]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": [x for x, _ in kept],
        "y": middle,
        "line": {"color": colour, "width": 2, "dash": DASHES[index % MOST_SERIES]},
        "marker": {
            "size": 10 if symbol in ("triangle-up", "diamond") else 8,
            "color": colour,
            "symbol": symbol,
            "line": {"color": "--surface", "width": 1.5},
        },
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [values[-1] - m for (_, values), m in zip(kept, middle, strict=True)],
            "arrayminus": [m - values[0] for (_, values), m in zip(kept, middle, strict=True)],
            "color": colour,
            "thickness": 1.25,
            "width": 3,
        },
        "customdata": [[values[0], values[-1], len(values)] for _, values in kept],
        "hovertemplate": f"{hover_range(unit)}<extra>{name}</extra>",
    }


def reference(published: Published, scale: Scale) -> Figure:
    """Published values: neutral dotted line, open diamonds."""
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": published.name,
        "showlegend": published.legend,
        "x": list(published.x),
        "y": [scale(value) for value in published.y],
        "line": {"color": "--ref", "width": 1.25, "dash": "dot"},
        "marker": {"symbol": "diamond-open", "size": 8, "color": "--ref", "line": {"width": 1.5}},
        "hovertemplate": f"{hover('y', scale.unit)}<extra>{published.name}</extra>",
    }
