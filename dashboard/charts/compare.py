"""Charts of a comparison: one series per member over the common points, and the change against the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.charts.parts import MOST_SERIES, SERIES, SYMBOLS, Figure, X, axis_title


@dataclass(frozen=True, slots=True)
class Change:
    """A member's change against the baseline in percent over x: value, lower and upper end of its interval (None: unknown)."""

    name: str
    index: int
    points: Sequence[tuple[X, float, float | None, float | None]]


def change_over(changes: Sequence[Change], *, quantity: str, parameter: str) -> Figure:
    """Dots with interval bars around a line at zero. `index` is the member's place: colour and marker as everywhere."""
    data = [_series(change) for change in changes if change.points]
    return {
        "data": data,
        "layout": {
            "xaxis": {"title": axis_title(parameter, ""), "type": "category"},
            "yaxis": {"title": axis_title(f"Change in {quantity}", "%"), "rangemode": "normal", "autorange": True},
            "shapes": [
                {
                    "type": "line",
                    "xref": "paper",
                    "x0": 0,
                    "x1": 1,
                    "y0": 0,
                    "y1": 0,
                    "line": {"color": "--ink-3", "width": 1},
                }
            ],
        },
    }


def _series(change: Change) -> Figure:
    place = change.index % MOST_SERIES
    return {
        "type": "scatter",
        "mode": "markers",
        "name": change.name,
        "x": [str(x) for x, *_ in change.points],
        "y": [value for _, value, *_ in change.points],
        "marker": {"size": 9, "color": SERIES[place], "symbol": SYMBOLS[place]},
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [0 if high is None else max(0.0, high - value) for _, value, _, high in change.points],
            "arrayminus": [0 if low is None else max(0.0, value - low) for _, value, low, _ in change.points],
            "color": SERIES[place],
            "thickness": 1.5,
            "width": 4,
        },
        "hovertemplate": f"%{{y:+.3~g}} %<extra>{change.name}</extra>",
    }
