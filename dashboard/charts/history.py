"""A metric of one configuration over its trials, with steps and baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from dashboard.charts.parts import Figure, Scale, axis_title, hover, skipped_line

_TICKS: Final = 6
"""Dates on the axis: more would overlap on a phone."""


@dataclass(frozen=True, slots=True)
class Level:
    """Trials ``first`` to ``last`` (positions) with one median."""

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
    trials: Sequence[int] = (),
    ends: Sequence[datetime] = (),
) -> Figure:
    """Draw trials in order, levels as lines, and `limits` of the last level as a band.

    The axis is the number of the trial: days without trials would hide the steps. Its ticks are the ends of trials.
    """
    scale = Scale.of(values, unit)
    xs = list(range(1, len(values) + 1))
    drawn: Figure = {
        "type": "scatter",
        "mode": "markers",
        "name": "Trials",
        "x": xs,
        "y": [scale(value) for value in values],
        "text": list(names),
        "rows": list(names),
        "marker": {"size": 7, "color": "--s1"},
        "hovertemplate": f"{hover('y', scale.unit)}, %{{text}}<extra></extra>",
        **({"of": [f"t{trial}" for trial in trials], "trials": list(trials)} if trials else {}),
    }
    return {
        "data": [*(_line(level, scale, legend=level is levels[0]) for level in levels), drawn],
        "layout": {
            "xaxis": {"range": [0, len(values) + 1], **_dates(ends)},
            "yaxis": {"title": axis_title(quantity, scale.unit), "range": _around([*values, *(limits or ())], scale)},
            "shapes": [_band(levels[-1], limits, scale)] if limits and levels else [],
            "hovermode": "closest",
        },
    }


def _dates(ends: Sequence[datetime]) -> Figure:
    """Return the title and distinct ticks at trials: times in one day, else dates.

    What all ticks have in common is in the title: longer ticks are oblique on a phone.
    """
    if not ends:
        return {"title": axis_title("End of the trial, oldest first", "")}
    forms = ("%H:%M", ", %d %b %Y") if ends[0].date() == ends[-1].date() else ("%d %b", ", %Y")
    tick, common = forms if ends[0].year == ends[-1].year else ("%d %b %Y", "")
    at = sorted({round(n * (len(ends) - 1) / (_TICKS - 1)) for n in range(_TICKS)})
    if tick == "%H:%M" and len({f"{ends[n]:{tick}}" for n in at}) < len(at):
        tick = "%H:%M:%S"
    at = sorted({f"{ends[n]:{tick}}": n for n in reversed(at)}.values())  # the first trial of equal ticks
    return {
        "title": axis_title(f"End of the trial{ends[0].strftime(common)}, oldest first", ""),
        "tickvals": [n + 1 for n in at],
        "ticktext": [f"{ends[n]:{tick}}" for n in at],
    }


def _around(values: Sequence[float], scale: Scale) -> list[float]:
    """Return an axis range that shows steps of a few per cent."""
    low, high = min(values), max(values)
    margin = max(0.08 * (high - low), 0.05 * (abs(low) + abs(high)) / 2) or 1.0
    return [scale(low - margin if low < 0 else max(0.0, low - margin)), scale(high + margin)]


def _ends(level: Level) -> tuple[float, float]:
    return level.first + 0.6, level.last + 1.4


def _line(level: Level, scale: Scale, *, legend: bool) -> Figure:
    line = skipped_line("Median of a level", _ends(level), [scale(level.median)] * 2, color="--s2", width=2)
    return {**line, "showlegend": legend}


def _band(level: Level, limits: tuple[float, float], scale: Scale) -> Figure:
    begin, end = _ends(level)
    index = {"x0": begin, "x1": end, "y0": scale(limits[0]), "y1": scale(limits[1])}
    return {"type": "rect", "layer": "below", "fillcolor": "--s2/0.12", "line": {"width": 0}, **index}
