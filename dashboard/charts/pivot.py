"""A panel of the explorer: one series per colour over a parameter or a metric."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dashboard.charts.parts import DASHES, MOST_SERIES, SERIES, SYMBOLS, Figure, Scale, X, axis_title, hover_range

_MOST_TICKS = 12


@dataclass(frozen=True, slots=True)
class Mark:
    """One cell: the statistic with the ends of its bar (None: no bar), every dot behind it, and how many values it holds."""

    x: X
    value: float
    low: float | None
    high: float | None
    dots: Sequence[float]
    n: int


@dataclass(frozen=True, slots=True)
class Axes:
    """What the axes say. ``x_unit`` is for metrics on x; parameters name their unit in the title."""

    x: str
    x_unit: str
    y: str
    y_unit: str
    x_log: bool = False
    y_log: bool = False


def pivot_panel(series: Sequence[tuple[str, Sequence[Sequence[Mark]]]], axes: Axes, *, scatter: bool) -> Figure:
    """A figure of at most six series, each of any number of lines; in a scatter plot of metric against metric nothing is joined."""
    joined = [(name, lines) for name, lines in series if any(lines)][:MOST_SERIES]
    shown = [(name, [mark for line in lines for mark in line]) for name, lines in joined]
    scale = Scale.of([mark.value for _, marks in shown for mark in marks], axes.y_unit)
    across = Scale.of([_number(mark.x) for _, marks in shown for mark in marks], axes.x_unit) if scatter else None
    data: list[Figure] = []
    for index, (name, lines) in enumerate(joined):
        data += [_dots(name, shown[index][1], index, scale)] if not scatter else []
        data.append(_series(name, lines, index, scale, across))
    x_axis: dict[str, Any] = {"title": axis_title(axes.x, across.unit if across else axes.x_unit)}
    if not scatter and not all(isinstance(mark.x, int | float) for _, marks in shown for mark in marks):
        x_axis |= {"type": "category", "title": axis_title(f"{axes.x}, not to scale", "")}
    else:
        values = sorted({_number(mark.x) for _, marks in shown for mark in marks})
        x_axis |= {"type": "log"} if axes.x_log else {}
        if not scatter and len(values) <= _MOST_TICKS:
            x_axis["tickvals"] = values
    y_axis: dict[str, Any] = {"title": axis_title(axes.y, scale.unit)}
    if axes.y_log:
        y_axis["type"] = "log"
    layout = {"xaxis": x_axis, "yaxis": y_axis}
    return {"data": data, "layout": layout | ({"hovermode": "closest"} if scatter else {})}


def _number(x: X) -> float:
    return float(x) if isinstance(x, int | float) else 0.0


def _dots(name: str, marks: Sequence[Mark], index: int, scale: Scale) -> Figure:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"{name}, all",
        "showlegend": False,
        "hoverinfo": "skip",
        "x": [mark.x for mark in marks for _ in mark.dots],
        "y": [scale(dot) for mark in marks for dot in mark.dots],
        "marker": {"size": 5, "color": f"{SERIES[index]}/0.4"},
    }


def _series(name: str, lines: Sequence[Sequence[Mark]], index: int, scale: Scale, across: Scale | None) -> Figure:
    def each(say: Callable[[Mark], Any]) -> list[Any]:
        """What every mark says; nothing between two lines, so that they are not joined."""
        told = [value for line in lines for value in (*(say(mark) for mark in line), None)]
        return told[:-1]

    trace: Figure = {
        "type": "scatter",
        "mode": "markers" if across else "lines+markers",
        "name": name,
        "x": each(lambda mark: across(_number(mark.x)) if across else mark.x),
        "y": each(lambda mark: scale(mark.value)),
        "marker": {"size": 7 if across else 8, "color": SERIES[index], "symbol": SYMBOLS[index]},
        "line": {"color": SERIES[index], "width": 2, "dash": DASHES[index]},
        "customdata": each(
            lambda m: [scale(m.value if m.low is None else m.low), scale(m.value if m.high is None else m.high), m.n]
        ),
        "hovertemplate": f"{hover_range(scale.unit)}<extra>{name}</extra>",
    }
    if not across:
        trace["error_y"] = {
            "type": "data",
            "symmetric": False,
            "array": each(lambda m: 0 if m.high is None else scale(m.high - m.value)),
            "arrayminus": each(lambda m: 0 if m.low is None else scale(m.value - m.low)),
            "color": SERIES[index],
            "thickness": 1.25,
            "width": 3,
        }
    return trace
