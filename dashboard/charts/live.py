"""Figures of a running trial: rates so far, and the processor time of its ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dashboard.charts.parts import Figure, Scale, axis_title, hover, short


def rates_so_far(history: Mapping[str, Sequence[float]], name: str, *, quantity: str, unit: str) -> Figure:
    """Draw one rate of `history` (base unit) over the seconds since the launch."""
    values = history.get(name) or []
    scale = Scale.of(values, unit)
    line = {
        "type": "scatter",
        "mode": "lines+markers" if len(values) < 3 else "lines",
        "name": quantity,
        "showlegend": False,
        "x": list(history.get("t_s") or []),
        "y": [short(scale(value)) for value in values],
        "line": {"color": "--s1", "width": 1.5},
        "hovertemplate": f"{hover('y', scale.unit)}<extra></extra>",
    }
    return {
        "data": [line] if values else [],
        "layout": {
            "margin": {"l": 52, "r": 14, "t": 10, "b": 40},
            "xaxis": {"title": axis_title("Time since the launch", "s"), "rangemode": "tozero"},
            "yaxis": {"title": axis_title(quantity, scale.unit), "rangemode": "tozero"},
        },
    }


def ranks_so_far(ranks: Sequence[tuple[int, str, float]]) -> Figure:
    """Draw the processor time of each rank (number, host, CPU seconds) as a bar."""
    scale = Scale.of([cpu_s for _, _, cpu_s in ranks], "s")
    bars = {
        "type": "bar",
        "name": "CPU time",
        "showlegend": False,
        "x": [str(rank) for rank, _, _ in ranks],
        "y": [short(scale(cpu_s)) for _, _, cpu_s in ranks],
        "text": [host for _, host, _ in ranks],
        "textposition": "none",
        "marker": {"color": "--s3/0.5", "line": {"color": "--s3", "width": 1}},
        "hovertemplate": f"%{{text}}: {hover('y', scale.unit)}<extra></extra>",
    }
    return {
        "data": [bars] if ranks else [],
        "layout": {
            "margin": {"l": 52, "r": 14, "t": 10, "b": 40},
            "xaxis": {"title": axis_title("Rank", ""), "type": "category"},
            "yaxis": {"title": axis_title("CPU time", scale.unit), "rangemode": "tozero"},
        },
    }
