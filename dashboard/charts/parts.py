"""The parts of a figure; colours are tokens of static/rankwire.css."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log10
from statistics import median
from typing import Any, Final

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
"""Dots of all series of a figure: more are not readable, and a figure stays below 200 kB."""
CELL_DIGITS = 5
"""Trials of one square among thousands: more than its hover text names."""
_NANOSECONDS = 9
"""Decimals of a second."""
_MOST_TICKS = 24
_TICKS_APART = 1 / 14
"""Share of an axis: on a phone, numbers closer than this overlap."""


def bars_note(figure: Figure) -> str:
    """Return what the bars of a figure are, in a sentence; "" without visible ones."""
    bars = [trace[axis] for trace in figure["data"] for axis in ("error_y", "error_x") if axis in trace]
    return " ".join(dict.fromkeys(bar["bars"] for bar in bars if any(bar["array"]) or any(bar["arrayminus"])))


def descheduled_note(figure: Figure) -> str:
    """Return the meaning of "descheduled" if a trace is named so, or ""."""
    names = [str(trace.get("name", "")).lower() for trace in figure["data"]]
    return "descheduled: no CPU core was free" if any("descheduled" in name for name in names) else ""


@dataclass(frozen=True, slots=True)
class Line:
    """Measured values over x: `trials[i]` are the values at `x[i]` (base unit)."""

    name: str
    x: Sequence[X]
    trials: Sequence[Sequence[float]]
    of: Sequence[int | str] = ()
    """Key of each `x[i]`: a configuration has the same key in every chart of a page, which marks them together."""
    ids: Sequence[Sequence[int]] = ()
    """Trials of the values, in the same order."""
    configurations: Sequence[int] = ()
    """Configurations whose trials a point leads to, if they differ from `of`."""


@dataclass(frozen=True, slots=True)
class Point:
    """Return the values at one x in ascending order, with their trials (0: unknown)."""

    x: X
    values: Sequence[float]
    trials: Sequence[int]
    of: int | str
    configuration: int


@dataclass(frozen=True, slots=True)
class Published:
    """Published or imported values over x, in the base unit."""

    name: str
    x: Sequence[X]
    y: Sequence[float]
    legend: bool = True
    of: Sequence[int] = ()
    """Configuration of the published study of each point, to whose trials it leads."""


def shortened(name: str, most: int) -> str:
    """Shorten a name for a legend, keeping its end: versions differ there."""
    if len(name) <= most:
        return name
    begin, end = most // 3, most - most // 3 - 1
    return f"{name[:begin].rstrip()}…{name[-end:].lstrip()}"


def hover(axis: str, unit: str) -> str:
    """Return a hover-text value with its unit; `place` is its Plotly name."""
    return with_unit(f"%{{{axis}:{HOVER}}}", unit)


def hover_range(unit: str) -> str:
    """Return a hover text of median, range and number of values."""
    return f"{hover('y', unit)}  [{hover('customdata[0]', '')} to {hover('customdata[1]', '')}], n=%{{customdata[2]}}"


def axis_title(quantity: str, unit: str) -> dict[str, str]:
    """Return 'Quantity (unit)'."""
    return {"text": f"{quantity} ({unit})" if unit else quantity}


def heat(x: Sequence[Any], y: Sequence[str], z: Sequence[Sequence[float | None]], *, name: str, unit: str) -> Figure:
    """Return a heat-map trace with colours from 0; None stays empty."""
    most = max((value for row in z for value in row if value is not None), default=0.0)
    return {
        "type": "heatmap",
        "name": name,
        "x": list(x),
        "y": list(y),
        "z": [list(row) for row in z],
        "zmin": 0,
        "zmax": most or 1.0,  # Plotly ignores a lower end without an upper one
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
    """Return an axis of names without grid, ticks and line, for maps."""
    bare = {"type": "category", "showgrid": False, "ticks": "", "showline": False}
    return {**bare, "title": axis_title(title, ""), **more}


FEW_LOG_TICKS = {"type": "log", "nticks": 7}
"""Return an axis of a small chart, with so few ticks that their numbers do not overlap."""


def level_line(axis: str, at: Any, **line: Any) -> Figure:
    """Return a line across the whole figure at one value of `axis` (x or y)."""
    other = "y" if axis == "x" else "x"
    ends = {f"{axis}0": at, f"{axis}1": at, f"{other}0": 0, f"{other}1": 1, f"{other}ref": "paper"}
    return {"type": "line", **ends, "line": line}


def skipped_line(name: str, x: Sequence[Any], y: Sequence[Any], **line: Any) -> Figure:
    """Return a line without hover text and table rows."""
    return {"type": "scatter", "mode": "lines", "name": name, "x": x, "y": y, "line": line, "hoverinfo": "skip"}


def band(x: Sequence[Any], low: Sequence[float], high: Sequence[float], colour: str, **line: Any) -> list[Figure]:
    """Return the edges of a filled band from `low` to `high`."""
    lower, upper = ({**skipped_line("", x, y, width=0, **line), "showlegend": False} for y in (low, high))
    return [lower, {**upper, "fill": "tonexty", "fillcolor": f"{colour}/0.16"}]


RANGE: Final = "Bars go from the lowest to the highest trial."
INTERVAL: Final = "Bars are 95 % confidence intervals."


def error_bars(up: Sequence[float], down: Sequence[float], colour: str, bars: str = INTERVAL) -> Figure:
    """Return bars above and below each point; ``bars`` states what they are."""
    look = {"color": colour, "thickness": 1.25, "width": 3, "bars": bars}
    return {"type": "data", "symmetric": False, "array": list(up), "arrayminus": list(down), **look}


def spread(line: Line, scale: Scale, index: int, *, series: int = 1) -> list[Figure]:
    """Return the traces of one series: trials, medians and ranges.

    `index` fixes colour, marker and dash; `series` is the number of series that share the dots of the figure.
    """
    points = _points(line, scale)
    return [_dots(line.name, points, index, series), _medians(line.name, points, scale.unit, index)]


def _points(line: Line, scale: Scale) -> list[Point]:
    points = []
    for index, (x, values) in enumerate(zip(line.x, line.trials, strict=True)):
        if values:
            trials = line.ids[index] if line.ids else [0] * len(values)
            pairs = sorted((short(scale(value)), trial) for value, trial in zip(values, trials, strict=True))
            of = line.of[index] if line.of else ""
            configuration = line.configurations[index] if line.configurations else of if isinstance(of, int) else 0
            points.append(Point(x, [value for value, _ in pairs], [trial for _, trial in pairs], of, configuration))
    return points


def short(value: float, digits: int = 7) -> float:
    """Round a value to the digits that a table or a screen can show."""
    return numbers.rounded(value, digits)


def leads(points: Sequence[Point], trials: Sequence[int]) -> Figure:
    """Return keys and targets of the points for static/chart-marks.js."""
    if not any(point.of != "" for point in points):
        return {}
    targets: Figure = {"of": [point.of for point in points]}
    if any(trials):
        targets["trials"] = list(trials)
    if any(point.configuration != point.of for point in points):
        targets["configurations"] = [point.configuration for point in points]
    return targets


def _dots(name: str, points: Sequence[Point], index: int, series: int) -> Figure:
    dots = [(point, at) for point in points for at in drawn(len(point.values), len(points) * series)]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": f"{name}, trials",
        "showlegend": False,
        "hoverinfo": "skip",
        "x": [point.x for point, _ in dots],
        "y": [point.values[at] for point, at in dots],
        "marker": {"size": 6, "color": f"{SERIES[index % MOST_SERIES]}/0.45"},
        **leads([point for point, _ in dots], [point.trials[at] for point, at in dots]),
    }


def drawn(count: int, points: int) -> Sequence[int]:
    """Return the indices of drawn values: all, or evenly spaced ones."""
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
            RANGE,
        ),
        "customdata": [[point.values[0], point.values[-1], len(point.values)] for point in points],
        "hovertemplate": f"{hover_range(unit)}<extra>{name}</extra>",
        **leads(points, [point.trials[0] if len(point.trials) == 1 else 0 for point in points]),
    }


def moments(zero_s: float | None, unit_s: float = 1.0) -> Figure:
    """Return what a layout needs for one cursor over several charts.

    For static/chart-view.js. ``zero_s``: the time of 0 in seconds since the epoch, None if unknown; ``unit_s``: the unit of the axis.
    """
    if zero_s is None:
        return {}
    return {"meta": {"zero_s": zero_s, "unit_s": unit_s}, "hoverdistance": -1}  # the nearest value, however far


def leads_to_packets(trial_address: str, intervals_s: Sequence[tuple[float, float]]) -> Figure:
    """Return the packets of each column of a map, for static/chart-marks.js.

    From and until are seconds since the first packet. A column that ended before the first packet leads nowhere.
    """
    words = [
        [numbers.plain(max(0.0, first), _NANOSECONDS), numbers.plain(until, _NANOSECONDS)] if until > 0 else []
        for first, until in intervals_s
    ]
    return {
        "leads": f"{trial_address}?tab=packets&from_s=*&until_s=*",
        "led": "Its packets",
        "rows": [],
        "columns": words,
    }


def ticks(values: Sequence[float], low: float, high: float) -> Figure:
    """Return ticks from `low` to `high`, labelled if they do not overlap."""
    return _ticks(values, [(value - low) / (high - low) for value in values])


def log_ticks(values: Sequence[float], low: float, high: float) -> Figure:
    """Return ticks of a logarithmic axis from ten to the `low` to ten to the `high`."""
    return _ticks(values, [(log10(value) - low) / (high - low) for value in values])


def _ticks(values: Sequence[float], places: Sequence[float]) -> Figure:
    """Return the indices of labelled ticks, far enough from each other.

    `places` are parts of the axis.
    """
    ordered = sorted(range(len(values)), key=places.__getitem__)
    labelled, last = set(ordered[-1:]), ordered[-1] if ordered else 0
    before = -_TICKS_APART
    for at in ordered:
        if places[at] - before >= _TICKS_APART and places[last] - places[at] >= _TICKS_APART:
            labelled.add(at)
            before = places[at]
    if len(labelled) == len(values):
        return {"tickvals": list(values)}
    # Many lines would merge into a surface.
    positions = range(len(values)) if len(values) <= _MOST_TICKS else sorted(labelled)
    texts = [numbers.significant(values[at]) if at in labelled else "" for at in positions]
    return {"tickvals": [values[at] for at in positions], "ticktext": texts}


def reference(published: Published, scale: Scale) -> Figure:
    """Return published values: neutral dotted line, open diamonds."""
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
