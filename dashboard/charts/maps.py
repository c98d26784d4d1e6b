"""A metric over two parameters: heat map, contours, difference of two maps."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10

from analysis import numbers
from dashboard.charts.parts import Figure, Scale, category_axis

Cells = Sequence[Sequence[float | None]]
"""Values by row (y) and column (x); None without a measurement."""
Keys = Sequence[Sequence[int]]
"""Configurations by row and column; 0 without one."""

# From here on along a colour scale, text is more readable in the colour of the surface.
_DARK = 0.55
_DARK_OF_HALF = 0.6
_PERCENT_FLOOR = 5.0
_MOST_COLUMNS, _MOST_ROWS = 14, 24
"""Largest numbers of columns and of rows with room for a number in each square."""


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
    """Draw a heat map, coloured by the logarithm of the value between `ends`.

    Rows and columns are settings, not to scale. `of`: keys of the squares, the same in all charts of the page;
    `configurations`: configurations whose trials a square leads to, if they differ from `of`.
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
    """Draw `cells` relative to `reference`: blue below it, orange above.

    In percent; with `as_ratio`, half and double have the same distance from the middle.
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
    """Draw labelled contour lines, linear between measured neighbours."""
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
    """Return keys and targets of the squares for static/chart-marks.js."""
    targets = {"of": of, "configurations": configurations}
    return {name: [list(row) for row in rows] for name, rows in targets.items() if rows}


def _figure(
    trace: Figure, text: Sequence[Sequence[str]], inks: Sequence[Sequence[str]], x_title: str, y_title: str
) -> Figure:
    if len(trace["x"]) > _MOST_COLUMNS or len(trace["y"]) > _MOST_ROWS:
        return {"data": [trace | {"xgap": 0, "ygap": 0}], "layout": _layout(x_title, y_title)}
    # Positions instead of names: Plotly takes a name such as "10" for the tenth position.
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


def _on(position: float | None, dark: float) -> str:
    """Return a readable text colour for a square at `place` along its scale."""
    return "--surface" if position is not None and position > dark else "--ink"
