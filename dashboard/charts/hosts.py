"""Use of every host over time: lines, or a map for many hosts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
    moments,
    short,
)

# Points of a long run would hide the lines that join them.
_MOST_MARKERS = 60


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
) -> Figure:
    """Draw `quantity` in base `unit` over the ends of the steps `t_s`.

    Ranges are drawn if a step holds several samples. `leads`: target of a step of a map (`leads_to_packets`);
    `zero_s`: time of the first sample.
    """
    scale = Scale.of([high for line in lines for span in line.ranges if span for high in span[1:2]], unit)
    time_axis = {"title": axis_title("Time since the first sample", "s")}
    if len(lines) > MOST_SERIES:
        figure = _map(t_s, lines, scale, quantity, time_axis)
        figure["data"][0] |= {**leads, "unit": scale.unit} if leads else {}
        figure["layout"] |= moments(zero_s)
        return figure
    return {
        "data": [_line(t_s, line, scale, index) for index, line in enumerate(lines)],
        "layout": {
            "xaxis": {**time_axis, "rangemode": "tozero"},
            "yaxis": {"title": axis_title(quantity, scale.unit), "rangemode": "tozero"},
            "showlegend": True,
            **moments(zero_s),
        },
    }


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
