"""Charts of a comparison: one series per member over the common points, and the change against the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analysis import numbers
from dashboard.charts.parts import MOST_SERIES, SERIES, SYMBOLS, Figure, X, axis_title


@dataclass(frozen=True, slots=True)
class Change:
    """A member's ratio to the baseline over x: value, lower and upper end of its interval (None: unknown)."""

    name: str
    index: int
    points: Sequence[tuple[X, float, float | None, float | None]]


def change_over(
    changes: Sequence[Change], *, quantity: str, parameter: str, baseline: str, in_times: bool = False
) -> Figure:
    """Dots with interval bars around a line at no change. `index` is the member's place: colour and marker as everywhere.

    In percent from zero, or with `in_times` as ratios (all positive) on a logarithmic axis around one.
    """
    title = axis_title(f"{quantity}, ratio to {baseline}", "") if in_times else axis_title(f"Change in {quantity}", "%")
    y_axis: Figure = {"title": title, "rangemode": "normal", "autorange": True}
    if in_times:
        y_axis["type"] = "log"
    unchanged = 1 if in_times else 0
    return {
        "data": [_series(change, in_times) for change in changes if change.points],
        "layout": {
            "xaxis": {"title": axis_title(parameter, ""), "type": "category"},
            "yaxis": y_axis,
            "shapes": [
                {
                    "type": "line",
                    "xref": "paper",
                    "x0": 0,
                    "x1": 1,
                    "y0": unchanged,
                    "y1": unchanged,
                    "line": {"color": "--ink-3", "width": 1},
                }
            ],
        },
    }


def _series(change: Change, in_times: bool) -> Figure:
    place = change.index % MOST_SERIES

    def shown(ratio: float) -> float:
        return ratio if in_times else (ratio - 1) * 100

    values = [shown(ratio) for _, ratio, *_ in change.points]
    lows = [None if low is None else shown(low) for _, _, low, _ in change.points]
    highs = [None if high is None else shown(high) for *_, high in change.points]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": change.name,
        "x": [str(x) for x, *_ in change.points],
        "y": values,
        "marker": {"size": 9, "color": SERIES[place], "symbol": SYMBOLS[place]},
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [0 if end is None else max(0.0, end - v) for v, end in zip(values, highs, strict=True)],
            "arrayminus": [0 if end is None else max(0.0, v - end) for v, end in zip(values, lows, strict=True)],
            "color": SERIES[place],
            "thickness": 1.5,
            "width": 4,
        },
        "text": [numbers.change(ratio) for _, ratio, *_ in change.points],
        "hovertemplate": f"%{{text}}<extra>{change.name}</extra>",
    }
