"""Network what-if: the deciding time over delay, and over delay and rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from analysis import numbers
from analysis.conclusions.wording import lower_first
from analysis.sensitivity import Fit, Link, relative_times
from dashboard.charts.parts import Figure, Line, Scale, axis_title, band, error_bars, skipped_line, spread

CONTOURS: Final = ((1.05, "dot"), (1.1, "solid"), (1.25, "dash"), (1.5, "dashdot"))
"""(Time relative to the current link, dash of the line)."""
_CELLS: Final = 40
_LEAST_DELAY_S: Final = 1e-6
_DIGITS: Final = 4
_PICOSECONDS: Final = 12
"""Decimals of a delay in seconds, enough for the shortest."""
_MARGIN: Final = 2.0
"""The map extends this factor beyond its contents."""


@dataclass(frozen=True, slots=True)
class Named:
    """A network drawn in the map."""

    name: str
    link: Link


@dataclass(frozen=True, slots=True)
class Timed:
    """Trials of one link: its delay (s), times (s), and configuration."""

    delay_s: float
    seconds: Sequence[float]
    of: int


def over_delay(
    here: Sequence[Timed], others: Sequence[Timed], rate: str, x: Scale, y: Scale, *, quantity: str
) -> Figure:
    """Draw times (s) by delay (s), at the current and at other rates.

    ``quantity`` names them; static/network.js fills curve, band and marker, found by the ``meta`` of their traces.
    """
    words = f"%{{y:{numbers.HOVER}}}{numbers.NARROW}{y.unit}"
    name = "Fit, with the band of 90 % of the trials"
    fit = {**skipped_line(name, [], [], color="--s3", width=2, dash="dash"), "hoverinfo": "all"}
    low, high = band([], [], [], "--s3")
    data: list[Figure] = [
        {**low, "meta": "low"},
        {**high, "meta": "high"},
        {**fit, "meta": "fit", "hovertemplate": f"{words}<extra>Fit</extra>"},
    ]
    for index, (name, rows) in enumerate(((f"Measured at {rate}", here), ("Measured at other rates", others))):
        if rows:
            line = Line(name, [x(row.delay_s) for row in rows], [row.seconds for row in rows], [row.of for row in rows])
            dots, medians = spread(line, y, index)
            data += [dots, {**medians, "mode": "markers"}]
    data.append(
        {
            "type": "scatter",
            "mode": "markers",
            "meta": "yours",
            "name": "Your network",
            "x": [],
            "y": [],
            "marker": {"size": 13, "color": "--mark", "line": {"color": "--ink", "width": 1.5}},
            "hovertemplate": f"{words}<extra>Your network</extra>",
        }
    )
    return {
        "data": data,
        "layout": {
            "hovermode": "closest",
            "xaxis": {"title": axis_title("One-way delay", x.unit), "rangemode": "tozero"},
            "yaxis": {"title": axis_title(quantity, y.unit), "rangemode": "tozero"},
        },
    }


def over_sizes(sizes: Sequence[int], here: Sequence[tuple[float, float, float]], *, quantity: str) -> Figure:
    """Draw times (s) by number of hosts on the current link; ``quantity`` names them.

    Each point is (low, value, high); static/network.js fills the trace "Your network".
    """
    y = Scale.of([high for *_, high in here], "s")
    data = [
        _by_size("On the current link", 0, sizes, [(y(low), y(value), y(high)) for low, value, high in here], y.unit),
        {**_by_size("On your network", 1, sizes, [], y.unit), "meta": "yours-sizes"},
    ]
    ticks: Figure = {"tickmode": "array", "tickvals": list(sizes), "ticktext": [str(size) for size in sizes]}
    return {
        "data": data,
        "exponent": y.exponent,
        "layout": {
            "hovermode": "closest",
            "xaxis": {"title": axis_title("Hosts", ""), **ticks},
            "yaxis": {"title": axis_title(quantity, y.unit), "rangemode": "tozero"},
        },
    }


def _by_size(
    name: str, index: int, sizes: Sequence[int], ends: Sequence[tuple[float, float, float]], unit: str
) -> Figure:
    colour = ("--s1", "--s3")[index]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": list(sizes) if ends else [],
        "y": [value for _, value, _ in ends],
        "line": {"color": colour, "width": 2, "dash": ("solid", "dash")[index]},
        "marker": {"size": 8, "color": colour, "symbol": ("circle", "diamond")[index]},
        "error_y": error_bars([high - v for _, v, high in ends], [v - low for low, v, _ in ends], colour),
        "customdata": [[low, high, None] for low, _, high in ends],
        "hovertemplate": f"%{{y:{numbers.HOVER}}}{numbers.NARROW}{unit}<extra>{name}</extra>",
    }


def network_map(fit: Fit, here: Link, named: Sequence[Named] = (), *, quantity: str, leads: str = "") -> Figure:
    """Draw the time that ``quantity`` names relative to ``here`` over delay and rate.

    Both axes are logarithmic. ``leads``: address of the answer for a link, with a ``*`` for its rate (bit/s) and
    one for its delay (s).
    """
    measured_delays = np.maximum(fit.runs.delay, _LEAST_DELAY_S)
    measured_rates = 1 / fit.runs.inverse_rate
    delays = _axis([*measured_delays, *(max(n.link.delay_s, _LEAST_DELAY_S) for n in named)])
    rates = _axis([*measured_rates, *(n.link.rate_bps for n in named)])
    ratios = relative_times(fit, here, delays.tolist(), rates.tolist())
    x = [numbers.rounded(1e3 * delay, 4) for delay in delays.tolist()]
    y = [numbers.rounded(1e-9 * rate, 4) for rate in rates.tolist()]
    box = _box(_ends(measured_delays * 1e3), _ends(measured_rates * 1e-9))
    answers: Figure = {}
    if leads:
        answers = {"leads": leads, "led": "This network", "rows": _words(rates), "columns": _words(delays)}
    data = [
        {**_heat(x, y, ratios, quantity), **answers},
        *(_contour(x, y, ratios, *contour) for contour in CONTOURS),
        box,
    ]
    if named:
        data.append(_networks(named, middle=float(np.sqrt(delays[0] * delays[-1]))))
    log: Figure = {"type": "log", "showgrid": False}
    return {
        "data": data,
        "layout": {
            "hovermode": "closest",
            "showlegend": False,
            "margin": {"l": 58, "r": 8, "t": 6, "b": 40},
            "xaxis": {**log, "title": axis_title("One-way delay", "ms"), "range": _range(x)},
            "yaxis": {**log, "title": axis_title("Rate", "Gbit/s"), "range": _range(y)},
        },
    }


def _ends(values: np.typing.NDArray[np.float64]) -> tuple[float, float]:
    return float(values.min()), float(values.max())


def _axis(values: Sequence[float]) -> np.typing.NDArray[np.float64]:
    return np.geomspace(min(values) / _MARGIN, max(values) * _MARGIN, _CELLS)


def _words(values: np.typing.NDArray[np.float64]) -> list[list[str]]:
    return [[numbers.plain(numbers.rounded(value, _DIGITS), _PICOSECONDS)] for value in values.tolist()]


def _range(values: Sequence[float]) -> list[float]:
    return [float(np.log10(values[0])), float(np.log10(values[-1]))]


def _heat(x: Sequence[float], y: Sequence[float], ratios: np.typing.NDArray[np.float64], quantity: str) -> Figure:
    ticks = [tick for tick in (1, 1.5, 2, 3, 5, 10, 20, 50, 100, 1000) if tick <= ratios.max()]
    return {
        "type": "heatmap",
        "name": f"Rate (Gbit/s) by one-way delay (ms): {lower_first(quantity)} relative to the current link",
        "x": x,
        "y": y,
        "z": [[round(float(np.log10(ratio)), 3) for ratio in row] for row in ratios],
        "text": [[numbers.times(float(ratio)) for ratio in row] for row in ratios],
        "colorscale": "--seq",
        "zmin": 0,
        "zmax": max(0.3, round(float(np.log10(ratios.max())), 3)),
        "hovertemplate": "%{text}<extra></extra>",
        "colorbar": {
            "title": {"text": "times", "side": "top", "font": {"size": 12, "color": "--ink-2"}},
            "thickness": 10,
            "outlinewidth": 0,
            "tickvals": [float(np.log10(tick)) for tick in ticks],
            "ticktext": [numbers.significant(tick) for tick in ticks],
            "tickfont": {"size": 12, "color": "--ink-2"},
        },
    }


def _contour(
    x: Sequence[float], y: Sequence[float], ratios: np.typing.NDArray[np.float64], level: float, dash: str
) -> Figure:
    return {
        "type": "contour",
        "name": numbers.percent_change(level),
        "x": x,
        "y": y,
        "z": [[round(float(ratio), 4) for ratio in row] for row in ratios],
        "showscale": False,
        "hoverinfo": "skip",
        "line": {"color": "--ink", "width": 1.5, "dash": dash, "smoothing": 0},
        "contours": {
            "start": level,
            "end": level,
            "size": 1,
            "coloring": "none",
            "showlabels": False,  # the lines are so close that their numbers overlap
        },
    }


def _box(x: tuple[float, float], y: tuple[float, float]) -> Figure:
    """Return the measured range as a trace; shapes have other log coordinates."""
    (west, right), (bottom, top) = x, y
    around = ([west, right, right, west, west], [bottom, bottom, top, top, bottom])
    return skipped_line("Measured", *around, color="--ink-2", width=1.25, dash="dash")


def _networks(named: Sequence[Named], *, middle: float) -> Figure:
    """Return names that extend towards the ``middle`` delay (s)."""
    return {
        "type": "scatter",
        "mode": "markers+text",
        "name": "Networks",
        "x": [max(network.link.delay_s, _LEAST_DELAY_S) * 1e3 for network in named],
        "y": [network.link.rate_bps * 1e-9 for network in named],
        "text": [network.name for network in named],
        "textposition": ["top right" if network.link.delay_s < middle else "bottom left" for network in named],
        "textfont": {"size": 12, "color": "--ink"},
        "marker": {"symbol": "diamond", "size": 10, "color": "--mark", "line": {"color": "--ink", "width": 1.25}},
        "hovertemplate": "%{text}<extra></extra>",
    }
