"""A panel of the explorer: one series per colour over a parameter or a metric."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log10
from os.path import commonprefix
from typing import Any

from analysis.numbers import MANY_TIMES
from dashboard.charts.parts import (
    DASHES,
    MOST_SERIES,
    RANGE,
    SERIES,
    SYMBOLS,
    Figure,
    Scale,
    X,
    axis_title,
    drawn,
    error_bars,
    hover_range,
    log_ticks,
    short,
    ticks,
)

_MOST_TICKS = 12


@dataclass(frozen=True, slots=True)
class Mark:
    """One point: the statistic with its bar (None: no bar), dots and count."""

    x: X
    value: float
    low: float | None
    high: float | None
    dots: Sequence[float]
    n: int
    of: str = ""
    """The same for points that are marked together."""
    address: str = ""
    """The part of the target address that differs between points; empty without a target."""


@dataclass(frozen=True, slots=True)
class Axes:
    """Titles of the axes; parameters on x name their unit in the title."""

    x: str
    x_unit: str
    y: str
    y_unit: str
    x_log: bool | None = None
    """Logarithmic; None: if the values span a decade."""
    y_log: bool | None = None
    leads: str = ""
    """Target address of all points; ``*`` is replaced by the part of each point."""
    bars: str = RANGE
    """Meaning of the bars of points, in a sentence."""


def pivot_panel(series: Sequence[tuple[str, Sequence[Sequence[Mark]]]], axes: Axes, *, scatter: bool) -> Figure:
    """Draw at most six series; metric against metric is a scatter plot."""
    joined = [(name, lines) for name, lines in series if any(lines)][:MOST_SERIES]
    flat = [(name, [mark for line in lines for mark in line]) for name, lines in joined]
    scale = Scale.of([mark.value for _, marks in flat for mark in marks], axes.y_unit)
    across = Scale.of([_number(mark.x) for _, marks in flat for mark in marks], axes.x_unit) if scatter else None
    data: list[Figure] = []
    for index, (name, lines) in enumerate(joined):
        data += [_dots(name, flat[index][1], index, scale)] if not scatter else []
        data.append(_series(name, lines, index, scale, across, axes))
    x_axis: dict[str, Any] = {"title": axis_title(axes.x, across.unit if across else axes.x_unit)}
    if not scatter and not all(isinstance(mark.x, int | float) for _, marks in flat for mark in marks):
        x_axis |= {"type": "category", "title": axis_title(f"{axes.x}, not to scale", "")}
    else:
        values = sorted({_number(mark.x) for _, marks in flat for mark in marks})
        x_log = _spans_decade(values) if axes.x_log is None else axes.x_log
        x_axis |= {"type": "log"} if x_log else {}
        if not scatter and len(values) <= _MOST_TICKS:
            x_axis |= _ticks(values, log=x_log)
    y_axis: dict[str, Any] = {"title": axis_title(axes.y, scale.unit)}
    if axes.y_log or (axes.y_log is None and _spans_decade([mark.value for _, marks in flat for mark in marks])):
        y_axis["type"] = "log"
    layout = {"xaxis": x_axis, "yaxis": y_axis}
    return {"data": data, "layout": layout | ({"hovermode": "closest"} if scatter else {})}


def _spans_decade(values: Sequence[float]) -> bool:
    return bool(values) and min(values) > 0 and max(values) >= MANY_TIMES * min(values)


def _number(x: X) -> float:
    return float(x) if isinstance(x, int | float) else 0.0


def _ticks(values: Sequence[float], *, log: bool) -> Figure:
    if len(values) < 2 or (log and values[0] <= 0):
        return {"tickvals": list(values)}
    if log:
        return log_ticks(values, log10(values[0]), log10(values[-1]))
    return ticks(values, values[0], values[-1])


def _dots(name: str, marks: Sequence[Mark], index: int, scale: Scale) -> Figure:
    drawn_dots = [
        (mark.x, dot)
        for mark in marks
        for dots in [sorted(mark.dots)]
        for dot in (dots[at] for at in drawn(len(dots), len(marks)))
    ]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"{name}, all",
        "showlegend": False,
        "hoverinfo": "skip",
        "x": [x for x, _ in drawn_dots],
        "y": [short(scale(dot)) for _, dot in drawn_dots],
        "marker": {"size": 5, "color": f"{SERIES[index]}/0.4"},
    }


def _leads(address: str, addresses: Sequence[str]) -> Figure:
    """Return the targets of a series, with their common prefix once."""
    non_empty = [address_part for address_part in addresses if address_part]
    # Each keeps one character: an empty one has no target.
    most = max(0, min(map(len, non_empty), default=0) - 1)
    shared = commonprefix(non_empty)[:most]  # noqa: RUF071 (characters are meant)
    return {
        "leads": address.replace("*", f"{shared}*"),
        "addresses": [address_part[len(shared) :] for address_part in addresses],
    }


def _series(
    name: str, lines: Sequence[Sequence[Mark]], index: int, scale: Scale, across: Scale | None, axes: Axes
) -> Figure:
    def mark_values(say: Callable[[Mark], Any], nothing: Any = None) -> list[Any]:
        """Return the hover text of every mark, with None between two lines."""
        values = [value for line in lines for value in (*(say(mark) for mark in line), nothing)]
        return values[:-1]

    def drawn_at(value: float) -> float:
        return short(scale(value))

    trace: Figure = {
        "type": "scatter",
        "mode": "markers" if across else "lines+markers",
        "name": name,
        "x": mark_values(lambda mark: short(across(_number(mark.x))) if across else mark.x),
        "y": mark_values(lambda mark: drawn_at(mark.value)),
        "marker": {"size": 7 if across else 8, "color": SERIES[index], "symbol": SYMBOLS[index]},
        "line": {"color": SERIES[index], "width": 2, "dash": DASHES[index]},
        "customdata": mark_values(
            lambda m: [
                drawn_at(m.value if m.low is None else m.low),
                drawn_at(m.value if m.high is None else m.high),
                m.n,
            ]
        ),
        "hovertemplate": f"{hover_range(scale.unit)}<extra>{name}</extra>",
        "of": mark_values(lambda mark: mark.of, ""),
        **_leads(axes.leads, mark_values(lambda mark: mark.address, "")),
    }
    if not across:
        up = mark_values(lambda m: 0 if m.high is None else drawn_at(m.high - m.value))
        down = mark_values(lambda m: 0 if m.low is None else drawn_at(m.value - m.low))
        trace["error_y"] = error_bars(up, down, SERIES[index], axes.bars)
    return trace
