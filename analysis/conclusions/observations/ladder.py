"""Effects of several changes: the tuning ladder, and effects alone and together.

The study of Eadline and Layton (2006) changed one thing after another and wrote down every step; it also warns that parameters depend on
each other. The ladder is the first, the effects are the second. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import exp, fsum, log
from statistics import median
from typing import Any, Final

from analysis.conclusions.context import ExperimentQuestion
from analysis.conclusions.observations.grid import Grid
from analysis.scaling import Point
from analysis.statistics import Interval, ratio_interval

DEPENDENT: Final = 1.05
"""Effects together more than 5 % away from the product of both alone: the effects depend on each other."""


@dataclass(frozen=True, slots=True)
class Trialled:
    """One configuration and its values of the metric, one per trial; at least one."""

    parameters: Mapping[str, Any]
    values: Sequence[float]

    @property
    def value(self) -> float:
        return median(self.values)


@dataclass(frozen=True, slots=True)
class Gain:
    """A gain: above 1 is better for any metric; no interval for single values."""

    factor: float
    interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the ladder, in the order in which it was taken."""

    number: int
    value: float
    changed: Mapping[str, tuple[Any, Any]]
    """Parameter -> (before, after), against the previous step; empty for the first."""
    against_previous: Gain | None
    against_first: Gain | None
    is_best_so_far: bool
    best_so_far: float


RatioOf = Callable[[Trialled, Trialled], Interval | None]
"""Interval of (the metric of one) / (that of the other)."""


def _alone(over: Trialled, under: Trialled) -> Interval | None:
    return ratio_interval(over.values, under.values)


def ladder(steps: Sequence[Trialled], *, higher_is_better: bool, ratio_of: RatioOf = _alone) -> list[Step]:
    """Return the steps in their order; a parameter that counts them is no change.

    Intervals are those of each pair alone without ``ratio_of``.
    """

    def gained(step: Trialled, over: Trialled | None) -> Gain | None:
        return None if over is None else gain(step, over, higher_is_better=higher_is_better, ratio_of=ratio_of)

    counter = _counters(steps)
    rows: list[Step] = []
    for index, step in enumerate(steps):
        previous = steps[index - 1] if index else None
        best = (max if higher_is_better else min)(earlier.value for earlier in steps[: index + 1])
        rows.append(
            Step(
                number=index + 1,
                value=step.value,
                changed={} if previous is None else _changes(previous, step, counter),
                against_previous=gained(step, previous),
                against_first=gained(step, previous and steps[0]),
                is_best_so_far=not rows or best != rows[-1].best_so_far,
                best_so_far=best,
            )
        )
    return rows


def gain(of: Trialled, over: Trialled, *, higher_is_better: bool, ratio_of: RatioOf = _alone) -> Gain:
    """Return how many times better ``of`` is; ValueError unless values are positive."""
    better, worse = (of, over) if higher_is_better else (over, of)
    if min(*of.values, *over.values) <= 0:
        raise ValueError("a gain needs positive values")
    return Gain(better.value / worse.value, ratio_of(better, worse))


def _counters(steps: Sequence[Trialled]) -> set[str]:
    names = {name for step in steps for name in step.parameters}
    return {name for name in names if [s.parameters.get(name) for s in steps] == list(range(1, len(steps) + 1))}


def _changes(before: Trialled, after: Trialled, ignored: Collection[str] = ()) -> dict[str, tuple[Any, Any]]:
    names = [name for name in after.parameters if name not in ignored]
    pairs = {name: (before.parameters.get(name), after.parameters[name]) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


@dataclass(frozen=True, slots=True)
class Effect:
    """One parameter changed alone: geometric mean over otherwise equal pairs."""

    parameter: str
    before: Any
    after: Any
    gain: float
    smallest: float
    largest: float
    pairs: int

    @property
    def depends(self) -> bool:
        """Return whether it helps at some values of the others and harms at others."""
        return self.smallest < 1 < self.largest


@dataclass(frozen=True, slots=True)
class JointEffect:
    """Two parameters changed together, against the product of both alone."""

    parameters: tuple[str, str]
    before: tuple[Any, Any]
    after: tuple[Any, Any]
    together: float
    product: float
    squares: int
    """Number of complete squares of four configurations."""

    @property
    def interaction(self) -> float:
        """Return together / product: 1 if the effects are independent."""
        return self.together / self.product

    @property
    def dependent(self) -> bool:
        return not 1 / DEPENDENT < self.interaction < DEPENDENT


def effects(points: Sequence[Trialled], *, higher_is_better: bool) -> list[Effect]:
    """Return the effect of every change of one parameter, in order of appearance."""
    by_change: dict[str, tuple[tuple[str, Any, Any], list[float]]] = {}
    for a, b in combinations(points, 2):
        changed = _changes(a, b)
        if len(changed) == 1:
            ((name, (before, after)),) = changed.items()
            _, gains = by_change.setdefault(repr((name, before, after)), ((name, before, after), []))
            gains.append(gain(b, a, higher_is_better=higher_is_better).factor)
    return [
        Effect(*change, gain=_geometric_mean(gains), smallest=min(gains), largest=max(gains), pairs=len(gains))
        for change, gains in by_change.values()
    ]


def joint_effects(points: Sequence[Trialled], *, higher_is_better: bool) -> list[JointEffect]:
    """Return two changes together against both alone, from all complete squares."""
    by_parameters = {_key(p.parameters): p for p in points}
    by_change: dict[str, tuple[tuple[Any, Any, Any], list[tuple[float, float]]]] = {}
    for a, b in combinations(points, 2):
        changed = _changes(a, b)
        if len(changed) != 2:
            continue
        (x, (x1, x2)), (y, (y1, y2)) = changed.items()
        only_x = by_parameters.get(_key({**a.parameters, x: x2}))
        only_y = by_parameters.get(_key({**a.parameters, y: y2}))
        # The square is met from both of its diagonals; one start of it is enough.
        if only_x is None or only_y is None or points.index(a) > min(points.index(only_x), points.index(only_y)):
            continue
        together, alone_x, alone_y = (
            gain(point, a, higher_is_better=higher_is_better).factor for point in (b, only_x, only_y)
        )
        change = ((x, y), (x1, y1), (x2, y2))
        by_change.setdefault(repr(change), (change, []))[1].append((together, alone_x * alone_y))
    return [
        JointEffect(
            *change,
            together=_geometric_mean([t for t, _ in squares]),
            product=_geometric_mean([p for _, p in squares]),
            squares=len(squares),
        )
        for change, squares in by_change.values()
    ]


def _key(parameters: Mapping[str, Any]) -> str:
    return repr(sorted(parameters.items(), key=lambda item: item[0]))


def _geometric_mean(values: Sequence[float]) -> float:
    return exp(fsum(map(log, values)) / len(values))


@dataclass(frozen=True, slots=True)
class Advance:
    """A step against the best one before it; ``step`` counts from 1 as designed."""

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
    rows = []
    for i, point in enumerate(grid.points[1:], 1):
        before = min(grid.points[:i], key=grid.cost)
        gain, interval, clear = grid.compare(before, point)
        step, over = step_of(grid.asked, point), step_of(grid.asked, before)
        rows.append(Advance(gain, step, over, point, before, interval, clear, grid.clearly(point, before)))
    return rows


def step_of(asked: ExperimentQuestion, point: Point) -> int:
    return next(i for i, p in enumerate(asked.points, 1) if p is point)
