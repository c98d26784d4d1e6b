"""Steps of a ladder of settings, each against the best one before it, with the answer's claims."""

from __future__ import annotations

from dataclasses import dataclass

from analysis.conclusions.context import Asked
from analysis.conclusions.observations.grid import Grid
from analysis.scaling import Point
from analysis.statistics import Interval


@dataclass(frozen=True, slots=True)
class Advance:
    """A step of an experiment against the best one before it; ``step`` counts from 1 as in the design, finished or not."""

    gain: float
    step: int
    over: int
    point: Point
    before: Point
    interval: Interval | None
    clear: bool
    lost: bool
    """True if the step is measurably worse."""


def advances(grid: Grid) -> list[Advance]:
    """Return every step against the best one before it."""
    found = []
    for i, point in enumerate(grid.points[1:], 1):
        before = min(grid.points[:i], key=grid.cost)
        gain, interval, clear = grid.compare(before, point)
        step, over = step_of(grid.asked, point), step_of(grid.asked, before)
        found.append(Advance(gain, step, over, point, before, interval, clear, grid.clearly(point, before)))
    return found


def step_of(asked: Asked, point: Point) -> int:
    return next(i for i, p in enumerate(asked.points, 1) if p is point)
