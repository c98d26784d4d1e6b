"""A metric against a swept parameter, with published values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import log10
from statistics import median
from typing import Any

from analysis.numbers import plural, significant, with_unit
from dashboard.charts.fits import Fitted, fit_traces
from dashboard.charts.parts import (
    MOST_SERIES,
    Figure,
    Line,
    Published,
    Scale,
    X,
    axis_title,
    hover,
    level_line,
    log_ticks,
    reference,
    spread,
    ticks,
)

_MOST_TICKS = 12
_DECADES_APART = 100
"""From this ratio on, the smaller values of a linear axis overlap."""


def over_parameter(
    lines: Sequence[Line],
    published: Sequence[Published] = (),
    *,
    quantity: str,
    unit: str,
    parameter: str,
    fastest: str = "",
    enough: X | None = None,
    models: Sequence[Fitted] = (),
    flagged: Sequence[tuple[X, float]] = (),
) -> Figure:
    """Draw `quantity` (values in `unit`) over the swept `parameter`.

    x is numeric if every value is a number, otherwise a category axis in the given order. With `fastest`, a word, the
    x of the lowest median of the first line is marked, and `enough`, the x that is enough by the answer. Lines beyond
    the series colours are not drawn: callers split them. The key "published" of the figure says if published values
    are on (they start hidden if they would squeeze the measured ones to a line). `models` are drawn with bands inside
    the measured range, `flagged` values (x, y) as open marks that enter no statistic.
    """
    drawn_lines = [_along_x(line) for line in lines if any(line.trials)][:MOST_SERIES]
    published = [_printed_along_x(p) for p in published if p.y]
    measured = [value for line in drawn_lines for trials in line.trials for value in trials]
    printed = [value for p in published for value in p.y]
    overlaid = _comparable(measured, printed)
    seen = [*measured, *(printed if overlaid else []), *(value for _, value in flagged)]
    scale = Scale.of(seen, unit)
    data = [{**reference(p, scale), "visible": overlaid, "meta": "published"} for p in published]
    data += fit_traces(models if drawn_lines else (), scale)
    data += [
        trace for index, line in enumerate(drawn_lines) for trace in spread(line, scale, index, series=len(drawn_lines))
    ]
    data += [_flagged(flagged, scale)] if flagged else []
    there = [x for line in drawn_lines for x in line.x] + [x for x, _ in flagged]
    xs = _ordered(there + [x for p in published if overlaid for x in p.x])
    top = max(map(scale, seen), default=1.0)
    y_axis = {"title": axis_title(quantity, scale.unit), "range": [0, top * 1.08 or 1.0]}
    figure: Figure = {"data": data, "layout": {"xaxis": x_axis(xs, parameter), "yaxis": y_axis}}
    if published:
        figure["published"] = overlaid
    if fastest and drawn_lines:
        _mark_fastest(figure, drawn_lines[0], parameter, fastest, enough)
    return figure


def _flagged(values: Sequence[tuple[X, float]], scale: Scale) -> Figure:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "Flagged, traffic excluded",
        "showlegend": True,
        "x": [x for x, _ in values],
        "y": [scale(value) for _, value in values],
        "marker": {"symbol": "x-open", "size": 8, "color": "--ref", "line": {"width": 1.5}},
        "hovertemplate": f"{hover('y', scale.unit)}<extra>Flagged, traffic excluded</extra>",
    }


def _along_x(line: Line) -> Line:
    if not _numeric(line.x):
        return line
    order = sorted(range(len(line.x)), key=lambda i: float(line.x[i]))

    def ordered(values: Sequence[Any]) -> list[Any]:
        return [values[i] for i in order] if values else []

    columns: dict[str, Any] = {
        name: ordered(getattr(line, name)) for name in ("x", "trials", "of", "ids", "configurations")
    }
    return replace(line, **columns)


def _printed_along_x(published: Published) -> Published:
    if not _numeric(published.x):
        return published
    order = sorted(range(len(published.x)), key=lambda i: float(published.x[i]))
    of = [published.of[i] for i in order] if published.of else []
    return replace(published, x=[published.x[i] for i in order], y=[published.y[i] for i in order], of=of)


def _comparable(measured: Sequence[float], printed: Sequence[float]) -> bool:
    """Return True if both are readable on one linear axis."""
    if not measured or not printed:
        return bool(printed)
    return max(printed) < 4 * max(measured) and max(measured) < 4 * max(printed)


def _ordered(xs: Sequence[X]) -> list[X]:
    distinct = list(dict.fromkeys(xs))
    return sorted(distinct) if _numeric(distinct) else distinct


def _numeric(xs: Sequence[X]) -> bool:
    return all(isinstance(x, int | float) and not isinstance(x, bool) for x in xs)


def x_axis(xs: Sequence[X], parameter: str) -> Figure:
    """Return an axis of all values: numeric, or categories in the given order."""
    if not xs:
        return {"title": axis_title(parameter, ""), "range": [0, 1], "showticklabels": False}
    if not _numeric(xs):
        return {"title": axis_title(f"{parameter}, not to scale", ""), "type": "category", "categoryarray": list(xs)}
    numbers = sorted({x for x in xs if isinstance(x, int | float)})
    low, high = min(numbers), max(numbers)
    if parameter != "Hosts" and low > 0 and high / low >= _DECADES_APART:
        ends = [log10(low) - 0.1, log10(high) + 0.1]
        return {"title": axis_title(parameter, ""), "type": "log", "range": ends, **log_ticks(numbers, *ends)}
    margin = 0.07 * (high - low) or 1.0
    ends = [low - margin, high + margin]
    axis: Figure = {"title": axis_title(parameter, ""), "range": ends}
    return axis | ticks(numbers, *ends) if len(numbers) <= _MOST_TICKS else axis


def _mark_fastest(figure: Figure, line: Line, parameter: str, fastest: str, enough: X | None) -> None:
    medians = [(median(values), x) for x, values in zip(line.x, line.trials, strict=True) if values]
    if len(medians) < 2:
        return
    best = min(medians, key=lambda pair: pair[0])[1]
    layout = figure["layout"]
    marked = [best]
    if enough is not None and enough != best and enough in line.x:
        marked.append(enough)
    layout["shapes"] = [level_line("x", x, color="--mark", width=1.5) for x in marked]
    # On a logarithmic axis annotations use the exponent, shapes the value.
    last = _ordered([x for _, x in medians])[-1]
    layout["annotations"] = [
        {
            "x": log10(float(x)) if layout["xaxis"].get("type") == "log" else x,
            "y": y,
            "yref": "paper",
            "yanchor": "top",
            "xanchor": "right" if x == last else "left",
            "text": f"&nbsp;{word}: {_at(x, parameter)}&nbsp;",
        }
        for word, x, y in zip((fastest, "enough"), marked, (1, 0.9), strict=False)
    ]


def _at(x: X, parameter: str) -> str:
    """Return '4 hosts', '1 host'; for an axis 'Delay (ms)' 'delay 4 ms'."""
    if parameter == "Hosts":
        return plural(x, "host") if isinstance(x, int | float) else f"{x} hosts"
    label, _, unit = parameter.rstrip(")").partition(" (")
    value = significant(x) if isinstance(x, int | float) else x
    return f"{label if label.isupper() else label.lower()} {with_unit(value, unit)}"
