"""The parts of a figure. Colours are tokens of static/rankwire.css; static/charts.js resolves and themes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log10
from statistics import median
from typing import Any

from analysis import numbers
from analysis.numbers import HOVER, with_unit
from analysis.numbers import Scale as Scale

Figure = dict[str, Any]
X = float | str

SERIES = ("--s1", "--s2", "--s3", "--s4", "--s5", "--s6")
SYMBOLS = ("circle", "square", "triangle-up", "diamond", "cross", "x")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
MOST_SERIES = len(SERIES)
MOST_DOTS = 600
"""Of all series of a figure: thousands of trials are a blot, and a figure stays below 200 kB."""
CELL_DIGITS = 5
"""Of one cell of thousands: more than its hover text says."""
_NANOSECONDS = 9
"""Decimals of a second."""
_MOST_TICKS = 24
_TICKS_APART = 1 / 14
"""Of an axis: on a phone two numbers that are nearer lie over each other, however they are turned."""


@dataclass(frozen=True, slots=True)
class Line:
    """Measured values over x: `trials[i]` holds every repetition's value at `x[i]`, in the base unit."""

    name: str
    x: Sequence[X]
    trials: Sequence[Sequence[float]]
    of: Sequence[int | str] = ()
    """What each `x[i]` is of: one configuration has one key in every chart of a page, which marks it in all of them together."""
    ids: Sequence[Sequence[int]] = ()
    """The trials that the values belong to, in their order."""
    configurations: Sequence[int] = ()
    """Whose trials a point leads to, where that is not what it is `of`."""


@dataclass(frozen=True, slots=True)
class Point:
    """The values at one x, from the lowest on, with the trials that they belong to (0: not known)."""

    x: X
    values: Sequence[float]
    trials: Sequence[int]
    of: int | str
    configuration: int


@dataclass(frozen=True, slots=True)
class Published:
    """Values from elsewhere over x, in the base unit."""

    name: str
    x: Sequence[X]
    y: Sequence[float]
    legend: bool = True
    of: Sequence[int] = ()
    """The configuration of the published study that each point is of, and whose trials it leads to."""


def shortened(name: str, most: int) -> str:
    """A name for a legend, with its end: versions of one name differ there."""
    if len(name) <= most:
        return name
    begin, end = most // 3, most - most // 3 - 1
    return f"{name[:begin].rstrip()}…{name[-end:].lstrip()}"


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
    most = max((value for row in z for value in row if value is not None), default=0.0)
    return {
        "type": "heatmap",
        "name": name,
        "x": list(x),
        "y": list(y),
        "z": [list(row) for row in z],
        "zmin": 0,
        "zmax": most or 1.0,  # Plotly heeds a lower end only beside an upper one
        "colorscale": "--seq",
        "hoverongaps": False,
        "colorbar": {
            "title": {"text": unit, "side": "top", "font": {"size": 12, "color": "--ink-2"}},
            "thickness": 10,
            "outlinewidth": 0,
            "tickfont": {"size": 12, "color": "--ink-2"},
        },
    }


def category_axis(title: str, **more: Any) -> Figure:
    """Return an axis of names without grid, ticks and line, as under the cells of a map."""
    bare = {"type": "category", "showgrid": False, "ticks": "", "showline": False}
    return {**bare, "title": axis_title(title, ""), **more}


FEW_LOG_TICKS = {"type": "log", "nticks": 7}
"""An axis of a small chart: with more ticks Plotly writes their numbers over each other."""


def level_line(axis: str, at: Any, **line: Any) -> Figure:
    """Return a line across the whole figure at one value of `axis` (x or y)."""
    other = "y" if axis == "x" else "x"
    ends = {f"{axis}0": at, f"{axis}1": at, f"{other}0": 0, f"{other}1": 1, f"{other}ref": "paper"}
    return {"type": "line", **ends, "line": line}


def skipped_line(name: str, x: Sequence[Any], y: Sequence[Any], **line: Any) -> Figure:
    """Return a line that neither hover text nor tables speak of."""
    return {"type": "scatter", "mode": "lines", "name": name, "x": x, "y": y, "line": line, "hoverinfo": "skip"}


def band(x: Sequence[Any], low: Sequence[float], high: Sequence[float], colour: str, **line: Any) -> list[Figure]:
    """Return the edges of a band from `low` to `high`, the space between them filled."""
    lower, upper = ({**skipped_line("", x, y, width=0, **line), "showlegend": False} for y in (low, high))
    return [lower, {**upper, "fill": "tonexty", "fillcolor": f"{colour}/0.16"}]


def error_bars(up: Sequence[float], down: Sequence[float], colour: str) -> Figure:
    """Return bars of these lengths above and below each point of a trace."""
    look = {"color": colour, "thickness": 1.25, "width": 3}
    return {"type": "data", "symmetric": False, "array": list(up), "arrayminus": list(down), **look}


def spread(line: Line, scale: Scale, index: int, *, series: int = 1) -> list[Figure]:
    """The traces of one measured series: every trial as a dot, a line through the medians, the full range as bar.

    Never a bare line (design notes). `index` fixes colour, marker and dash; `series`: how many share the dots that a figure may have.
    """
    points = _points(line, scale)
    return [_dots(line.name, points, index, series), _medians(line.name, points, scale.unit, index)]


def _points(line: Line, scale: Scale) -> list[Point]:
    points = []
    for place, (x, values) in enumerate(zip(line.x, line.trials, strict=True)):
        if values:
            trials = line.ids[place] if line.ids else [0] * len(values)
            pairs = sorted((short(scale(value)), trial) for value, trial in zip(values, trials, strict=True))
            of = line.of[place] if line.of else ""
            configuration = line.configurations[place] if line.configurations else of if isinstance(of, int) else 0
            points.append(Point(x, [value for value, _ in pairs], [trial for _, trial in pairs], of, configuration))
    return points


def short(value: float, digits: int = 7) -> float:
    """Return a value with the digits that a table or a screen can show."""
    return numbers.rounded(value, digits)


def leads(points: Sequence[Point], trials: Sequence[int]) -> Figure:
    """What static/chart-marks.js knows of each point drawn: its key, its one trial if it is of one, else its configuration."""
    if not any(point.of != "" for point in points):
        return {}
    known: Figure = {"of": [point.of for point in points]}
    if any(trials):
        known["trials"] = list(trials)
    if any(point.configuration != point.of for point in points):
        known["configurations"] = [point.configuration for point in points]
    return known


def _dots(name: str, points: Sequence[Point], index: int, series: int) -> Figure:
    each = [(point, place) for point in points for place in drawn(len(point.values), len(points) * series)]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"{name}, trials",
        "showlegend": False,
        "hoverinfo": "skip",
        "x": [point.x for point, _ in each],
        "y": [point.values[place] for point, place in each],
        "marker": {"size": 6, "color": f"{SERIES[index % MOST_SERIES]}/0.45"},
        **leads([point for point, _ in each], [point.trials[place] for point, place in each]),
    }


def drawn(count: int, points: int) -> Sequence[int]:
    """Which of so many values, in order of size, are dots: all, or evenly many from the lowest to the highest of thousands."""
    most = max(2, MOST_DOTS // points)
    return range(count) if count <= most else sorted({round(i * (count - 1) / (most - 1)) for i in range(most)})


def _medians(name: str, points: Sequence[Point], unit: str, index: int) -> Figure:
    colour, symbol = SERIES[index % MOST_SERIES], SYMBOLS[index % MOST_SERIES]
    middle = [short(median(point.values)) for point in points]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": [point.x for point in points],
        "y": middle,
        "line": {"color": colour, "width": 2, "dash": DASHES[index % MOST_SERIES]},
        "marker": {
            "size": 10 if symbol in ("triangle-up", "diamond") else 8,
            "color": colour,
            "symbol": symbol,
            "line": {"color": "--surface", "width": 1.5},
        },
        "error_y": error_bars(
            [short(point.values[-1] - m) for point, m in zip(points, middle, strict=True)],
            [short(m - point.values[0]) for point, m in zip(points, middle, strict=True)],
            colour,
        ),
        "customdata": [[point.values[0], point.values[-1], len(point.values)] for point in points],
        "hovertemplate": f"{hover_range(unit)}<extra>{name}</extra>",
        **leads(points, [point.trials[0] if len(point.trials) == 1 else 0 for point in points]),
    }


def leads_to_packets(trial_address: str, intervals_s: Sequence[tuple[float, float]]) -> Figure:
    """What static/chart-marks.js knows of a map over time: the packets of each column, from and until seconds since the first packet.

    A column that ended before the first packet leads nowhere.
    """
    words = [
        [numbers.plain(max(0.0, first), _NANOSECONDS), numbers.plain(until, _NANOSECONDS)] if until > 0 else []
        for first, until in intervals_s
    ]
    return {"leads": f"{trial_address}?from_s=*&until_s=*#packets", "led": "Its packets", "rows": [], "columns": words}


def ticks(values: Sequence[float], low: float, high: float) -> Figure:
    """A tick at each of these values of an axis from `low` to `high`, with the numbers that stand beside each other on a phone."""
    return _ticks(values, [(value - low) / (high - low) for value in values])


def log_ticks(values: Sequence[float], low: float, high: float) -> Figure:
    """The same on a logarithmic axis from ten to the `low` to ten to the `high`."""
    return _ticks(values, [(log10(value) - low) / (high - low) for value in values])


def _ticks(values: Sequence[float], places: Sequence[float]) -> Figure:
    """`places`: as parts of the axis. The first and the last have their number, and those between that are far enough from both."""
    ordered = sorted(range(len(values)), key=places.__getitem__)
    kept, last = set(ordered[-1:]), ordered[-1] if ordered else 0
    before = -_TICKS_APART
    for at in ordered:
        if places[at] - before >= _TICKS_APART and places[last] - places[at] >= _TICKS_APART:
            kept.add(at)
            before = places[at]
    if len(kept) == len(values):
        return {"tickvals": list(values)}
    # Lines for all of many would be a surface.
    shown = range(len(values)) if len(values) <= _MOST_TICKS else sorted(kept)
    texts = [numbers.significant(values[at]) if at in kept else "" for at in shown]
    return {"tickvals": [values[at] for at in shown], "ticktext": texts}


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
        **({"of": list(published.of)} if published.of else {}),
    }
