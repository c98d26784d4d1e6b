"""A metric of one configuration over its trials: every value, the levels between steps, and the range of the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.charts.parts import Figure, Scale, axis_title


@dataclass(frozen=True, slots=True)
class Level:
    """Trials ``first`` to ``last`` (positions) around one median."""

    first: int
    last: int
    median: float


def over_time(
    values: Sequence[float],
    names: Sequence[str],
    levels: Sequence[Level],
    *,
    quantity: str,
    unit: str,
    limits: tuple[float, float] | None = None,
) -> Figure:
    """Trials in their order (days without trials would hide the steps), levels as lines, `limits` of the last level as a band."""
    scale = Scale.of(values, unit)
    xs = list(range(1, len(values) + 1))
    data: list[Figure] = []
    for level in levels:
        ends = [level.first + 0.6, level.last + 1.4]
        line = {"color": "--s2", "width": 2}
        middle = [scale(level.median)] * 2
        data.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": ends,
                "y": middle,
                "line": line,
                "hoverinfo": "skip",
                "showlegend": level is levels[0],
                "name": "Median of a level",
            }
        )
    data.append(
        {
            "type": "scatter",
            "mode": "markers",
            "name": "Trials",
            "x": xs,
            "y": [scale(value) for value in values],
            "text": list(names),
            "marker": {"size": 7, "color": "--s1"},
            "hovertemplate": f"%{{y:.4~g}} {scale.unit}, %{{text}}<extra></extra>",
        }
    )
    shapes = []
    if limits and levels:
        place = {
            "x0": levels[-1].first + 0.6,
            "x1": levels[-1].last + 1.4,
            "y0": scale(limits[0]),
            "y1": scale(limits[1]),
        }
        shapes = [{"type": "rect", "layer": "below", "fillcolor": "--s2/0.12", "line": {"width": 0}, **place}]
    return {
        "data": data,
        "layout": {
            "xaxis": {"title": axis_title("Trial, oldest first", ""), "range": [0, len(values) + 1]},
            "yaxis": {"title": axis_title(quantity, scale.unit)},
            "shapes": shapes,
            "hovermode": "closest",
        },
    }
