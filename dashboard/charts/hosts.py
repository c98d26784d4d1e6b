"""Use of every host over time: lines, or a map for many hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.numbers import SHARE, amount
from dashboard.charts.parts import (
    CELL_DIGITS,
    DASHES,
    MOST_SERIES,
    SERIES,
    Figure,
    Scale,
    axis_title,
    heat,
    hover,
    level_line,
    moments,
    short,
)

# Points of a long run would hide the lines that join them.
_MOST_MARKERS = 60
_LEAST_OF_LIMIT = 0.05
"""Share of the limit below which a line at it would flatten the others: it is named then."""
_ROOM = 1.15
"""Height of the axis relative to the peak, with room for the name of the limit."""


@dataclass(frozen=True, slots=True)
class HostLine:
    """One host: per step its mean and (lowest, highest, samples), or None."""

    host: str
    means: Sequence[float | None]
    ranges: Sequence[tuple[float, float, int] | None]


def hosts_over_time(
    t_s: Sequence[float],
    lines: Sequence[HostLine],
    *,
    quantity: str,
    unit: str,
    leads: Figure | None = None,
    zero_s: float | None = None,
    limit: float | None = None,
) -> Figure:
    """Draw `quantity` in base `unit` over the ends of the steps `t_s`.

    Ranges are drawn if a step holds several samples. `leads`: target of a step of a map (`leads_to_packets`);
    `zero_s`: time of the first sample; `limit`: largest possible value of a host.
    """
    values = [high for line in lines for span in line.ranges if span for high in span[1:2]]
    peak = max(values, default=0.0)
    is_near = limit is not None and peak >= _LEAST_OF_LIMIT * limit
    scale = Scale.of([*values, limit] if limit is not None and is_near else values, unit)
    time_axis = {"title": axis_title("Time since the first sample", "s")}
    if len(lines) > MOST_SERIES:
        figure = _map(t_s, lines, scale, quantity, time_axis)
        figure["data"][0] |= {**leads, "unit": scale.unit} if leads else {}
        figure["layout"] |= moments(zero_s)
        return figure
    room = {"range": [0, _ROOM * scale(peak)]} if limit and peak and not is_near else {}
    return {
        "data": [_line(t_s, line, scale, index) for index, line in enumerate(lines)],
        "layout": {
            "xaxis": {**time_axis, "rangemode": "tozero"},
            "yaxis": {"title": axis_title(quantity, scale.unit), "rangemode": "tozero", **room},
            "showlegend": True,
            **moments(zero_s),
            **(_limit(limit, peak, unit, scale, is_near=is_near) if limit else {}),
        },
    }


def _limit(limit: float, peak: float, unit: str, scale: Scale, *, is_near: bool) -> Figure:
    """Return a line at the limit, or its words in the corner if it is far above."""
    words = f"link rate {amount(limit, unit, 3)}, peak {amount(peak / limit, SHARE, 2)} of it"
    note = {"xref": "paper", "x": 1, "xanchor": "right", "yanchor": "bottom", "text": words}
    if not is_near:
        return {"annotations": [{**note, "y": 1, "yref": "paper", "yanchor": "top"}]}  # the legend is above
    line = level_line("y", scale(limit), color="--ink-3", width=1, dash="dash")
    return {"shapes": [line], "annotations": [{**note, "y": scale(limit)}]}


def _line(t_s: Sequence[float], line: HostLine, scale: Scale, index: int) -> Figure:
    # No `of` (the key that charts of a page mark together): no other chart of a trial has single hosts.
    several = any(span and span[2] > 1 for span in line.ranges)
    words = hover("y", scale.unit)
    if several:
        words += f"  [{hover('customdata[0]', '')} to {hover('customdata[1]', '')}]"
    trace: Figure = {
        "type": "scatter",
        "mode": "lines+markers" if len(t_s) <= _MOST_MARKERS else "lines",
        "name": line.host,
        "x": [short(t, CELL_DIGITS) for t in t_s],
        "y": [None if value is None else short(scale(value), CELL_DIGITS) for value in line.means],
        "line": {"color": SERIES[index], "width": 1.75, "dash": DASHES[index]},
        "marker": {"size": 5, "color": SERIES[index]},
        "hovertemplate": f"{words}<extra>{line.host}</extra>",
    }
    if several:
        trace["customdata"] = [
            None if span is None else [*(short(scale(end), CELL_DIGITS) for end in span[:2]), span[2]]
            for span in line.ranges
        ]
    return trace


def _map(t_s: Sequence[float], lines: Sequence[HostLine], scale: Scale, quantity: str, time_axis: Figure) -> Figure:
    cells = [[None if value is None else short(scale(value), CELL_DIGITS) for value in line.means] for line in lines]
    hosts, times = [line.host for line in lines], [short(t, CELL_DIGITS) for t in t_s]
    trace: Figure = {
        **heat(times, hosts, cells, name=axis_title(quantity, scale.unit)["text"], unit=scale.unit),
        "hovertemplate": f"%{{y}}, {hover('x', 's')}: {hover('z', scale.unit)}<extra></extra>",
    }
    return {
        "data": [trace],
        "layout": {
            "hovermode": "closest",
            "plot_bgcolor": "--line",
            "margin": {"l": 60, "r": 4, "t": 8, "b": 40},
            "xaxis": time_axis,
            "yaxis": {"type": "category", "showgrid": False, "ticks": "", "autorange": "reversed"},
        },
    }
