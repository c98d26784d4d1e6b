"""Energy against time, one point per configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from analysis.numbers import SHARE, amount
from analysis.statistics import Interval
from dashboard.charts.parts import SERIES, Figure, Line, Scale, axis_title, error_bars, hover, level_line, skipped_line

_MOST_NAMED: Final = 8
"""Points that all have their name in the chart; of more, those of the trade-off line alone."""


@dataclass(frozen=True, slots=True)
class Compromise:
    """A configuration: medians of time (s) and energy (J) with their intervals."""

    name: str
    configuration: int
    time_s: float
    energy_j: float
    time: Interval | None
    energy: Interval | None
    is_on_line: bool
    """No other configuration is both faster and thriftier."""


def trade_off(points: Sequence[Compromise]) -> Figure:
    """Draw energy over time: the trade-off line, and what is slower with more energy."""
    line = sorted((point for point in points if point.is_on_line), key=lambda point: point.time_s)
    others = [point for point in points if not point.is_on_line]
    x, y = Scale.of([p.time_s for p in points], "s"), Scale.of([p.energy_j for p in points], "J")
    right, top = (1.15 * max(values) for values in zip(*((_ends(p, x, y)) for p in points), strict=True))
    fastest, least = line[0], line[-1]
    corner = {"x0": x(fastest.time_s), "y0": y(least.energy_j), "x1": right, "y1": top}
    shapes: list[Figure] = [
        {"type": "rect", **corner, "fillcolor": "--ref/0.08", "line": {"width": 0}, "layer": "below"}
    ]
    data = []
    if len(line) > 1:
        at = [x(fastest.time_s), x(fastest.time_s), x(least.time_s)]
        path = [y(fastest.energy_j), y(least.energy_j), y(least.energy_j)]
        saved, longer = 1 - least.energy_j / fastest.energy_j, least.time_s / fastest.time_s - 1
        price = skipped_line(f"−{amount(saved, SHARE, 2)} energy, +{amount(longer, SHARE, 2)} time", at, path)
        data.append({**price, "line": {"color": "--mark", "width": 2}})
    data.append(_trace("On the trade-off line", line, x, y, is_line=True))
    if others:
        data.append(_trace("Slower, more energy", others, x, y))
    named = points if len(points) <= _MOST_NAMED else line
    notes = [_note(point, x, y) for point in named]
    return {
        "data": data,
        "layout": {
            "xaxis": {"title": axis_title("Elapsed time", x.unit), "range": [0, right]},
            "yaxis": {"title": axis_title("Energy", y.unit), "range": [0, top]},
            "shapes": shapes,
            "annotations": notes,
        },
    }


def with_idle_power(figure: Figure, watts: float, lines: Sequence[Line]) -> Figure:
    """Add the power of a host without a trial to a chart of the power of hosts."""
    scale = Scale.of([value for line in lines for values in line.trials for value in values], "W")
    note = {"xref": "paper", "x": 1, "xanchor": "right", "yanchor": "bottom", "y": scale(watts)}
    words = f"without a trial: {amount(watts, 'W', 3)}"
    layout = figure["layout"]
    layout["yaxis"]["rangemode"] = "tozero"
    layout["shapes"] = [
        *layout.get("shapes", ()),
        level_line("y", scale(watts), color="--ref", width=1.25, dash="dash"),
    ]
    layout["annotations"] = [*layout.get("annotations", ()), {**note, "text": words}]
    return figure


def _ends(point: Compromise, x: Scale, y: Scale) -> tuple[float, float]:
    """Return the largest values that a point shows."""
    time_s = point.time.high if point.time and point.time.high else point.time_s
    energy_j = point.energy.high if point.energy and point.energy.high else point.energy_j
    return x(max(time_s, point.time_s)), y(max(energy_j, point.energy_j))


def _note(point: Compromise, x: Scale, y: Scale) -> Figure:
    at = {"x": x(point.time_s), "y": y(point.energy_j), "xanchor": "left", "yanchor": "bottom", "xshift": 6}
    return {**at, "text": point.name}


def _trace(name: str, points: Sequence[Compromise], x: Scale, y: Scale, *, is_line: bool = False) -> Figure:
    colour = SERIES[0] if is_line else "--ref"
    symbol, size = ("circle", 9) if is_line else ("diamond", 10)
    return {
        "type": "scatter",
        "mode": "lines+markers" if is_line else "markers",
        "name": name,
        "x": [x(point.time_s) for point in points],
        "y": [y(point.energy_j) for point in points],
        "line": {"color": colour, "width": 2},
        "marker": {"size": size, "color": colour, "symbol": symbol, "line": {"color": "--surface", "width": 1.5}},
        "error_x": _bars([(point.time_s, point.time) for point in points], x, colour),
        "error_y": _bars([(point.energy_j, point.energy) for point in points], y, colour),
        "customdata": [[point.name] for point in points],
        "hovertemplate": f"%{{customdata[0]}}: {hover('x', x.unit)}, {hover('y', y.unit)}<extra>{name}</extra>",
        "of": [point.configuration for point in points],
    }


def _bars(values: Sequence[tuple[float, Interval | None]], scale: Scale, colour: str) -> Figure:
    """Return bars to the ends of the intervals; none if an end is unknown."""
    up = [scale(max(0.0, i.high - v)) if i and i.high is not None else 0.0 for v, i in values]
    down = [scale(max(0.0, v - i.low)) if i and i.low is not None else 0.0 for v, i in values]
    return error_bars(up, down, colour)
