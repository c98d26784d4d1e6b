"""Transfer time and bandwidth over message sizes, on logarithmic axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from analysis.numbers import size
from dashboard.charts.parts import FEW_LOG_TICKS, MOST_SERIES, Figure, Line, Scale, axis_title, spread

_POWERS = [2**power for power in range(0, 41, 2)]


def time_curves(lines: Sequence[Line]) -> Figure:
    """Draw transfer times (s) over message sizes (bytes)."""
    return _curves(lines, "Transfer time", Scale(-6, "µs"), y_axis=FEW_LOG_TICKS)


def bandwidth_curves(lines: Sequence[Line]) -> Figure:
    """Draw bandwidths (size / transfer time, B/s) over message sizes (bytes)."""
    rates = [
        replace(line, trials=[[size / t for t in times] for size, times in zip(line.x, line.trials, strict=True)])  # type: ignore[operator]
        for line in lines
    ]
    values = [value for line in rates for trials in line.trials for value in trials]
    return _curves(rates, "Bandwidth", Scale.of(values, "B/s"), y_axis={"rangemode": "tozero"})


def _curves(lines: Sequence[Line], quantity: str, scale: Scale, *, y_axis: Figure) -> Figure:
    drawn_lines = lines[:MOST_SERIES]
    sizes = [float(x) for line in drawn_lines for x in line.x]
    ticks = [power for power in _POWERS if min(sizes) <= power <= max(sizes)]
    return {
        "data": [
            trace
            for index, line in enumerate(drawn_lines)
            for trace in spread(line, scale, index, series=len(drawn_lines))
        ],
        "layout": {
            "xaxis": {
                "title": axis_title("Message size", "B"),
                "type": "log",
                "tickvals": ticks,
                "ticktext": [_size(power) for power in ticks],
            },
            "yaxis": {"title": axis_title(quantity, scale.unit), **y_axis},
        },
    }


def _size(size_bytes: int) -> str:
    return size(size_bytes).removesuffix("B").strip()
