"""A metric over two parameters: heat map with its values in the cells, contour, and how far apart two maps are."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10

from analysis import numbers
from dashboard.charts.parts import Figure, Scale, category_axis

Cells = Sequence[Sequence[float | None]]
"""Values by row (y) and column (x); None where nothing was measured."""
Keys = Sequence[Sequence[int]]
"""Configurations by row and column, 0 where there is none."""

# From here on along a colour scale, cells are so saturated that text reads better in the colour of the surface.
_DARK = 0.55
_DARK_OF_HALF = 0.6
_PERCENT_FLOOR = 5.0
_MOST_COLUMNS, _MOST_ROWS = 14, 24
"""Cells in a row and in a column that have room for a number each."""


def heat_map(
    x: Sequence[str],
    y: Sequence[str],
    cells: Cells,
    *,
    x_title: str,
    y_title: str,
    scale: Scale,
    ends: tuple[float, float],
    of: Keys = (),
    configurations: Keys = (),
) -> Figure:
    """Cells coloured by the logarithm of their value between `ends`, which several maps share; rows and columns are settings.

    `of`: what each cell is of, as every map and chart of the page names it; `configurations`: whose trials a cell leads to, where
    those are others.
    """
    low, high = (log10(end) for end in ends)
    span = high - low or 1.0
    z = [[None if value is None else log10(value) for value in row] for row in cells]
    text = [["" if value is None else numbers.significant(scale(value), 3) for value in row] for row in cells]
    places = [[None if value is None else (value - low) / span for value in row] for row in z]
    trace = {**_cells(x, y, z, text, f"{y_title} by {x_title} ({scale.unit})"), "colorscale": "--seq"}
    trace |= {"unit": scale.unit, **_leads(of, configurations)}
    trace |= {
        "zmin": low,
        "zmax": low + span,
        "hovertemplate": f"%{{x}}, %{{y}}: {numbers.with_unit('%{text}', scale.unit)}<extra></extra>",
    }
    return _figure(trace, text, [[_on(p, _DARK) for p in row] for row in places], x_title, y_title)


def difference_map(
    x: Sequence[str],
    y: Sequence[str],
    cells: Cells,
    reference: Cells,
    *,
    x_title: str,
    y_title: str,
    of: Keys = (),
    as_ratio: bool = False,
) -> Figure:
    """Return `cells` against `reference`: blue below it, orange above, equality in the middle.

    In percent; with `as_ratio` half and double are equally far from the middle.
    """
    ratios = [
        [None if not a or not b else a / b for a, b in zip(row, other, strict=True)]
        for row, other in zip(cells, reference, strict=True)
    ]
    written = numbers.times if as_ratio else numbers.percent_change
    z = [[None if r is None else log10(r) if as_ratio else 100 * (r - 1) for r in row] for row in ratios]
    text = [["" if ratio is None else written(ratio) for ratio in row] for row in ratios]
    least = log10(1 + _PERCENT_FLOOR / 100) if as_ratio else _PERCENT_FLOOR
    most = max([least, *(abs(v) for row in z for v in row if v is not None)])
    trace = _cells(x, y, z, text, f"{y_title} by {x_title} ({'ratio' if as_ratio else '%'})")
    trace |= {"colorscale": "--div", "zmin": -most, "zmax": most, **_leads(of)}
    trace["hovertemplate"] = "%{x}, %{y}: %{text}<extra></extra>"
    inks = [[_on(None if v is None else abs(v) / most, _DARK_OF_HALF) for v in row] for row in z]
    return _figure(trace, text, inks, x_title, y_title)


def contour(
    x: Sequence[str], y: Sequence[str], cells: Cells, *, x_title: str, y_title: str, scale: Scale, of: Keys = ()
) -> Figure:
    """Lines of equal value between the measured cells, each with its value; straight between neighbours, no model."""
    z = [[None if value is None else scale(value) for value in row] for row in cells]
    text = [["" if value is None else numbers.significant(value, 3) for value in row] for row in z]
    trace: Figure = {
        **_cells(x, y, z, text, f"{y_title} by {x_title} ({scale.unit})"),
        "type": "contour",
        "colorscale": "--seq",
        "connectgaps": False,
        "line": {"smoothing": 0, "width": 1.5, "color": "--ink-2"},
        "contours": {
            "coloring": "heatmap",
            "showlabels": True,
            "labelfont": {"size": 12, "color": "--ink"},
            "labelformat": numbers.HOVER,
        },
        "hovertemplate": f"%{{x}}, %{{y}}: {numbers.with_unit('%{text}', scale.unit)}<extra></extra>",
        "unit": scale.unit,
        **_leads(of),
    }
    for only_of_cells in ("xgap", "ygap"):
        del trace[only_of_cells]
    return {"data": [trace], "layout": _layout(x_title, y_title)}


def _cells(x: Sequence[str], y: Sequence[str], z: Cells, text: Sequence[Sequence[str]], name: str) -> Figure:
    return {
        "type": "heatmap",
        "name": name,
        "x": list(x),
        "y": list(y),
        "z": [list(row) for row in z],
        "text": [list(row) for row in text],
        "showscale": False,
        "xgap": 2,
        "ygap": 2,
        "hoverongaps": False,
    }


def _leads(of: Keys, configurations: Keys = ()) -> Figure:
    """What static/chart-marks.js knows of the cells, row by row as z."""
    known = {"of": of, "configurations": configurations}
    return {name: [list(row) for row in rows] for name, rows in known.items() if rows}


def _figure(
    trace: Figure, text: Sequence[Sequence[str]], inks: Sequence[Sequence[str]], x_title: str, y_title: str
) -> Figure:
    if len(trace["x"]) > _MOST_COLUMNS or len(trace["y"]) > _MOST_ROWS:
        return {"data": [trace | {"xgap": 0, "ygap": 0}], "layout": _layout(x_title, y_title)}
    # Places and not names: a name such as "10" would be taken for the tenth place.
    notes = [
        {"x": column, "y": row, "text": words, "font": {"size": 12, "color": inks[row][column]}}
        for row, line in enumerate(text)
        for column, words in enumerate(line)
        if words
    ]
    return {"data": [trace], "layout": {**_layout(x_title, y_title), "annotations": notes}}


def _layout(x_title: str, y_title: str) -> Figure:
    margin = {"l": 58, "r": 8, "t": 6, "b": 40}
    axes = {"xaxis": category_axis(x_title), "yaxis": category_axis(y_title)}
    return {"hovermode": "closest", "margin": margin, **axes}


def _on(place: float | None, dark: float) -> str:
    """The ink that reads on a cell `place` along its scale; the scales of both themes are made for this."""
    return "--surface" if place is not None and place > dark else "--ink"
