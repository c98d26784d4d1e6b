"""Charts of a comparison: values over the common points, and changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analysis import numbers
from dashboard.charts.parts import (
    FEW_LOG_TICKS,
    MOST_SERIES,
    SERIES,
    SYMBOLS,
    Figure,
    X,
    axis_title,
    error_bars,
    level_line,
)


@dataclass(frozen=True, slots=True)
class Ratio:
    """Ratio of a member to the baseline at one x, with its interval (None: unknown)."""

    x: X
    value: float
    low: float | None
    high: float | None
    of: str = ""
    configuration: int = 0


@dataclass(frozen=True, slots=True)
class MemberChange:
    """One member against the baseline over x."""

    name: str
    index: int
    points: Sequence[Ratio]


def change_over(
    changes: Sequence[MemberChange], *, quantity: str, parameter: str, baseline: str, in_times: bool = False
) -> Figure:
    """Return dots with interval bars around a line at no change.

    `index` is the position of the member: it sets colour and marker, as in all charts. In percent from zero, or
    with `in_times` as ratios (all positive) on a logarithmic axis around one.
    """
    title = axis_title(f"{quantity}, ratio to {baseline}", "") if in_times else axis_title(f"Change in {quantity}", "%")
    y_axis: Figure = {"title": title, "rangemode": "normal", "autorange": True}
    if in_times:
        y_axis |= FEW_LOG_TICKS
    return {
        "data": [_series(change, in_times) for change in changes if change.points],
        "layout": {
            "xaxis": {"title": axis_title(f"{parameter}, not to scale", ""), "type": "category"},
            "yaxis": y_axis,
            "shapes": [level_line("y", 1 if in_times else 0, color="--ink-3", width=1)],
        },
    }


def _series(change: MemberChange, in_times: bool) -> Figure:
    index = change.index % MOST_SERIES

    def position(ratio: float) -> float:
        return ratio if in_times else (ratio - 1) * 100

    values = [position(point.value) for point in change.points]
    lows = [None if point.low is None else position(point.low) for point in change.points]
    highs = [None if point.high is None else position(point.high) for point in change.points]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": change.name,
        "x": [str(point.x) for point in change.points],
        "y": values,
        "marker": {"size": 9, "color": SERIES[index], "symbol": SYMBOLS[index]},
        "error_y": error_bars(
            [0 if end is None else max(0.0, end - v) for v, end in zip(values, highs, strict=True)],
            [0 if end is None else max(0.0, v - end) for v, end in zip(values, lows, strict=True)],
            SERIES[index],
        ),
        "customdata": [[low, high, None] for low, high in zip(lows, highs, strict=True)],
        "text": [(numbers.times if in_times else numbers.percent_change)(point.value) for point in change.points],
        "of": [point.of for point in change.points],
        "configurations": [point.configuration for point in change.points],
        "hovertemplate": f"%{{text}}<extra>{change.name}</extra>",
    }
