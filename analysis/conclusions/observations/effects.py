"""Effects of single network factors: ratios of levels, time per second of delay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from analysis.conclusions.context import Factor
from analysis.conclusions.observations.grid import Grid, ordinal
from analysis.conclusions.observations.needs import DELAY
from analysis.conclusions.observations.scatter import LEVEL
from analysis.scaling import Point
from analysis.statistics import Interval


@dataclass(frozen=True, slots=True)
class Effect:
    """Effect of one network factor: costliest against cheapest level, others equal."""

    factor: Factor
    cheapest: Point
    costliest: Point
    ratio: float
    interval: Interval | None
    clear: bool
    harshest: Effect | None = None
    """The effect at the costliest levels of the others: loss may matter only with delay."""

    @property
    def matters(self) -> bool:
        return self.clear or (self.harshest is not None and self.harshest.clear)


def effects_of(grid: Grid, network: Sequence[Factor], part: Sequence[Point]) -> list[Effect]:
    """Return the effect of each factor at the extremes of the others, largest first."""
    effects = []
    for factor in network:
        rows = sorted(grid.along(factor, part), key=lambda row: min(grid.cost(p) for p in row))
        if rows:
            mildest, harshest = _effect(grid, factor, rows[0]), _effect(grid, factor, rows[-1])
            effects.append(replace(mildest, harshest=harshest) if len(rows) > 1 else mildest)
    return sorted(effects, key=lambda effect: -effect.ratio)


def _effect(grid: Grid, factor: Factor, row: Sequence[Point]) -> Effect:
    ordered = sorted(row, key=grid.cost)
    return Effect(factor, ordered[0], ordered[-1], *grid.compare(ordered[-1], ordered[0]))


def first_matters(grid: Grid, effects: Sequence[Effect]) -> bool:
    """Return whether the first effect is measurably larger than every other one.

    Effects from one point are compared by their ends.
    """
    if len(effects) < 2:
        return False
    first = effects[0]
    for other in effects[1:]:
        if other.cheapest is first.cheapest:
            if not grid.clearly(first.costliest, other.costliest):
                return False
        elif (
            first.interval is None or other.interval is None or (first.interval.low or 0) <= (other.interval.high or 0)
        ):
            return False
    return True


@dataclass(frozen=True, slots=True)
class Slope:
    """Time per unit of delay, at the others' ``where``; interval if repeated."""

    per_unit: float
    interval: Interval | None
    where: Mapping[str, Any]

    @property
    def clear(self) -> bool:
        """Return whether time measurably grows with delay."""
        return self.per_unit > 0 and (self.interval is None or (self.interval.low or 0) > 0)


def slopes_of(grid: Grid, network: Sequence[Factor], part: Sequence[Point]) -> list[Slope]:
    """Return time per second of delay of each row along the delay."""
    delay = next((f for f in network if f.name == DELAY), None)
    if delay is None or grid.asked.deciding.unit != "s" or grid.asked.deciding.higher_is_better:
        return []
    slopes = []
    for row in grid.along(delay, part):
        if len({p.parameters[DELAY] for p in row}) > 1:
            where = {f.name: row[0].parameters.get(f.name) for f in grid.asked.factors if f.name != DELAY}
            slopes.append(Slope(*_secant(grid, row), where))
    return slopes


def _secant(grid: Grid, row: Sequence[Point]) -> tuple[float, Interval | None]:
    """Return the time per unit of delay over the whole range, with its interval.

    The interval follows from those of both ends (Zou and Donner 2008).

    A program may hide the first milliseconds behind its computing, or be bound by its windows only beyond some: the range as
    measured is what the number holds for. If the times differ measurably, the interval stays on one side of zero.
    """
    first, last = row[0], row[-1]
    span = float(last.parameters[DELAY]) - float(first.parameters[DELAY])
    low, high = grid.typical(first), grid.typical(last)
    ends = [grid.interval(p) for p in (first, last)]
    if any(e is None or e.low is None or e.high is None for e in ends):
        return (high - low) / span, None
    (a, b), (c, d) = ((float(e.low or 0), float(e.high or 0)) for e in ends if e is not None)
    lower = high - low - float(np.hypot(high - c, b - low))
    upper = high - low + float(np.hypot(d - high, low - a))
    ratio = grid.claims.ratio(grid.index(last), grid.index(first))
    if ratio is not None and ratio.low is not None and ratio.low > 1:
        lower = max(lower, a * (ratio.low - 1))
    return (high - low) / span, Interval(lower / span, upper / span, LEVEL, "of both ends, on logarithms")


def slope_of(effect: Effect, slopes: Sequence[Slope]) -> Slope | None:
    """Return the positive slope along the row of this effect, if it spans the row."""
    costliest = effect.costliest.parameters
    if effect.factor.name != DELAY or ordinal(costliest[DELAY]) <= ordinal(effect.cheapest.parameters[DELAY]):
        return None
    same = (s for s in slopes if all(costliest.get(name) == level for name, level in s.where.items()))
    return next((s for s in same if s.clear), None)


def together(grid: Grid, part: Sequence[Point]) -> tuple[float, Interval | None] | None:
    """Return the ratio of the worst to the best point if several factors differ."""
    best, worst = min(part, key=grid.cost), max(part, key=grid.cost)
    differing = [f for f in grid.asked.factors if best.parameters.get(f.name) != worst.parameters.get(f.name)]
    ratio, interval, clear = grid.compare(worst, best)
    return (ratio, interval) if clear and len(differing) > 1 else None
