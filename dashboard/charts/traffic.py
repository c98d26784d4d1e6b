"""Figures of a capture beyond rates: gaps between packets, traffic matrices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil, erfc, exp, log, sqrt
from typing import Any, Final

import numpy as np
from scipy.special import gammaincc

from dashboard.charts.parts import CELL_DIGITS, DASHES, Figure, Scale, axis_title, category_axis, heat, hover, short

# Measured points and three curves are distinguishable; the table next to the chart lists every fit.
MOST_FITS = 3
MOST_ROWS: Final = 128
"""Rows of a matrix: more are narrower than the gap between them, and a figure stays below 200 kB."""
JOINED: Final = " to "
"""Separator between the first and the last of neighbours that share a row."""
_COLOURS = ("--s3", "--s2", "--s4")

# P(gap > x) of the fitted distributions, location 0, parameters as analysis names them.
_SURVIVAL: dict[str, Callable[[Mapping[str, float], float], float]] = {
    "exponential": lambda p, x: exp(-x / p["mean_s"]),
    "weibull": lambda p, x: exp(-((x / p["scale_s"]) ** p["shape"])),
    "lognormal": lambda p, x: 0.5 * erfc((log(x) - p["mu"]) / (p["sigma"] * sqrt(2))),
    "gamma": lambda p, x: float(gammaincc(p["shape"], x / p["scale_s"])),
    "pareto": lambda p, x: min(1.0, (p["minimum_s"] / x) ** p["alpha"]),
}


_DECADES: Final = {"type": "log", "exponentformat": "power", "dtick": 1}
"""A number for each power of ten: Plotly's numbers between them overlap in a small panel."""


def interarrival_ccdf(
    gap_s: Sequence[float], share_longer: Sequence[float], fits: Sequence[Mapping[str, Any]]
) -> Figure:
    """Draw the share of gaps longer than x, measured and fitted (log axes)."""
    points = [(x, y) for x, y in zip(gap_s, share_longer, strict=True) if x > 0 and y > 0]
    data = [_curve("Measured", points, "markers", marker={"size": 5, "color": "--ink"})]
    lowest = min((y for _, y in points), default=1e-3) / 2
    drawn_fits = [fit for fit in fits if fit["distribution"] in _SURVIVAL][:MOST_FITS]
    for fit, colour, dash in zip(drawn_fits, _COLOURS, DASHES, strict=False):
        survival = _SURVIVAL[fit["distribution"]]
        curve = [(x, y) for x, _ in points if (y := survival(fit["parameters"], x)) >= lowest]
        line = {"color": colour, "width": 1.75, "dash": dash}
        data.append(_curve(fit["distribution"].capitalize(), curve, "lines", line=line))
    return {
        "data": data if points else [],
        "layout": {
            "xaxis": {"title": axis_title("Gap x", "s"), **_DECADES},
            "yaxis": {"title": axis_title("P(gap > x)", ""), **_DECADES},
        },
    }


def _curve(name: str, points: Sequence[tuple[float, float]], mode: str, **look: Figure) -> Figure:
    x, y = [x for x, _ in points], [y for _, y in points]
    words = f"{hover('y', '')}<extra>{name}</extra>"
    return {"type": "scatter", "mode": mode, "name": name, "x": x, "y": y, "hovertemplate": words, **look}


def neighbours_together(count: int) -> int:
    """Return the number of neighbouring hosts or ranks in one row."""
    return max(1, ceil(count / MOST_ROWS))


def traffic_matrix(labels: Sequence[Any], wire_bytes: Sequence[Sequence[float]], *, of: str, leads: str = "") -> Figure:
    """Draw bytes from row to column as a heat map.

    Pairs without bytes stay empty. Neighbours are added up if there are more than MOST_ROWS. `leads`: target
    address of a square, with a ``*`` for the name of its row and one for that of its column.
    """
    names, sums = _together([str(label) for label in labels], wire_bytes)
    scale = Scale.of([value for row in sums for value in row], "B")
    cells = [[short(scale(value), CELL_DIGITS) if value else None for value in row] for row in sums]
    trace: Figure = {
        **heat(names, names, cells, name=f"From {of} to {of} ({scale.unit})", unit=scale.unit),
        "xgap": 1,
        "ygap": 1,
        "hovertemplate": f"{of} %{{y}} to %{{x}}: {hover('z', scale.unit)}<extra></extra>",
        **({"leads": leads, "led": "Its packets", "unit": scale.unit} if leads else {}),
    }
    return {
        "data": [trace] if any(value for row in sums for value in row) else [],
        "layout": {
            "hovermode": "closest",
            "margin": {"l": 46, "r": 4, "t": 8, "b": 40},
            "plot_bgcolor": "--line",
            "xaxis": category_axis(f"To {of}"),
            "yaxis": category_axis(f"From {of}", autorange="reversed"),
        },
    }


def _together(names: list[str], values: Sequence[Sequence[float]]) -> tuple[list[str], Sequence[Sequence[float]]]:
    group_size = neighbours_together(len(names))
    if group_size == 1:
        return names, values
    first = range(0, len(names), group_size)
    groups = [names[index : index + group_size] for index in first]
    sums = np.add.reduceat(np.add.reduceat(np.array(values), first, axis=0), first, axis=1)
    return [JOINED.join(dict.fromkeys((group[0], group[-1]))) for group in groups], sums.tolist()
