"""Head lines of searches for the best settings."""

from __future__ import annotations

from typing import Final

from analysis.conclusions.observations.grid import Grid
from analysis.conclusions.wording import first_up, percent, point_words
from analysis.numbers import plural, significant, with_interval
from analysis.scaling import Point
from analysis.statistics import Interval

NO_RESULT: Final = "No trial of the search has a result."


def best(grid: Grid, point: Point, ratio: float, interval: Interval | None, trials: int, looked: float | None) -> str:
    """Return the confirmed gain, its interval, and what the search had shown."""
    name = first_up(point_words(grid.question.factors, point.parameters))
    ends = (
        ""
        if interval is None
        else f"95 % CI {significant(interval.low or 0, 3)} to {significant(interval.high or 0, 3)}, "
    )
    search_words = "" if looked is None else f" In the search it looked like {significant(looked, 3)}."
    return (
        f"{name} is best: {significant(ratio, 3)} times as good as the starting settings. "
        f"{first_up(ends)}from {plural(trials, 'trial')} made after it was chosen.{search_words}"
    )


def no_gain(most: float) -> str:
    return f"The starting settings are as good as the best ones found. These gain at most {percent(most)}."


def undecided(grid: Grid, point: Point, ratio: float, interval: Interval | None) -> str:
    name = point_words(grid.question.factors, point.parameters)
    return (
        "No settings are measurably better than the starting ones yet. "
        f"The best candidate, {name}, is {with_interval(ratio, interval, digits=3)} times as good."
    )


def so_far(name: str, looked: float | None) -> str:
    gain = "" if looked is None else f": {significant(looked, 3)} times as good as the starting settings"
    return f"{first_up(name)} looks best so far{gain}. New trials confirm it after the search."
