"""Measured points by their parameters, with simultaneous intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import groupby
from math import exp
from typing import Any

from analysis.conclusions.answer import Figure
from analysis.conclusions.context import ExperimentQuestion, Factor
from analysis.scaling import Point
from analysis.statistics import Interval


class Grid:
    """The measured points by their parameters, with simultaneous intervals."""

    def __init__(self, question: ExperimentQuestion) -> None:
        self.question = question
        self.points = question.measured()
        self.claims = question.claims(self.points, question.separating())
        # By identity: comparing ten thousand points by value took longer than all claims.
        self._places = {id(point): index for index, point in enumerate(self.points)}

    def index(self, point: Point) -> int:
        """Return the place of one of ``points``, or of one that equals it."""
        position = self._places.get(id(point))
        return self.points.index(point) if position is None else position

    def worse(self, i: int, j: int) -> tuple[float, Interval | None, bool]:
        """Return the ratio of i to j (above 1 is worse), its interval, and if i is worse."""
        a, b = (j, i) if self.question.deciding.higher_is_better else (i, j)
        return exp(self.claims.change(a, b)), self.claims.ratio(a, b), self.claims.larger(a, b)

    def compare(self, worse: Point, better: Point) -> tuple[float, Interval | None, bool]:
        """Return ``worse`` of two points."""
        return self.worse(self.index(worse), self.index(better))

    def clearly(self, worse: Point, better: Point) -> bool:
        """Return whether a point is measurably worse than another."""
        return self.compare(worse, better)[2]

    def as_good(self, ranked: Sequence[Point]) -> list[Point]:
        """Return the points that are not measurably worse than the first, the best."""
        return [point for point in ranked[1:] if not self.clearly(point, ranked[0])]

    def cost(self, point: Point) -> float:
        """Return the logarithm of a point's median, turned so that less is better."""
        middle = self.claims.cells[self.index(point)].middle
        return -middle if self.question.deciding.higher_is_better else middle

    def typical(self, point: Point) -> float:
        """Return the median of a point's values, as in charts and tables."""
        return exp(self.claims.cells[self.index(point)].middle)

    def interval(self, point: Point) -> Interval | None:
        """Return the interval of a point's median."""
        return self.claims.value(self.index(point))

    def figure(self, point: Point, where: Mapping[str, Any] | None = None) -> Figure:
        """Return the median of a point as a figure; ``where`` None takes all factors."""
        if where is None:
            where = {f.name: point.parameters.get(f.name) for f in self.question.factors}
        deciding = self.question.deciding
        return Figure.within(deciding.label, self.typical(point), deciding.unit, self.interval(point), where)

    def along(self, factor: Factor, points: Sequence[Point] | None = None) -> list[list[Point]]:
        """Return the groups of points that differ in this factor alone, by its level."""
        names = [f.name for f in self.question.factors if f.name != factor.name]

        def key(point: Point) -> str:
            return repr([point.parameters.get(name) for name in names])

        chosen = sorted(points or self.points, key=lambda p: (key(p), ordinal(p.parameters.get(factor.name))))
        return [members for _, group in groupby(chosen, key=key) if len(members := list(group)) > 1]


class SizeGrid(Grid):
    """The points along one factor, smallest level first. Sizes are positions."""

    def __init__(self, question: ExperimentQuestion, factor: Factor) -> None:
        self.factor = factor
        super().__init__(replace(question, points=sorted(question.measured(), key=lambda p: p.parameters[factor.name])))

    def level(self, i: int) -> float:
        return float(self.points[i].parameters[self.factor.name])

    @cached_property
    def best(self) -> int:
        return min(range(len(self.points)), key=lambda i: self.cost(self.points[i]))

    @cached_property
    def enough_sizes(self) -> Sequence[int]:
        """Return the sizes that are not measurably worse than the best, itself included."""
        best = self.best
        return [i for i in range(len(self.points)) if i == best or not self.worse(i, best)[2]]

    @property
    def enough(self) -> int:
        """Return the smallest size that is not measurably worse than the best."""
        return self.enough_sizes[0]

    @property
    def most_gained(self) -> float | None:
        """Return the upper bound of a gain over the smallest sufficient size."""
        good = self.enough_sizes
        others = [interval for i in good[1:] if (interval := self.worse(good[0], i)[1])]
        return max((interval.high for interval in others if interval.high is not None), default=None)

    @property
    def is_equal(self) -> bool:
        """Return whether no size may be ``equal`` times better than the sufficient one."""
        return self.claims.printed or (self.most_gained or 1.0) < self.question.equal


class ExperimentIntervals:
    """The intervals of all points, and of all pairs that the answer compares.

    All views take their intervals from here. ``parts`` are the slices; ``as_measured`` are the same with the drift that
    ``parts`` exclude, for tables of measured values.
    """

    def __init__(self, metric: str, parts: Sequence[Grid], as_measured: Sequence[Grid] = ()) -> None:
        self.metric = metric
        self._claims = [part.claims for part in parts]
        self._values = [part.claims for part in as_measured] or self._claims
        self._places = {
            key(p.parameters): (part, i) for part, grid in enumerate(parts) for i, p in enumerate(grid.points)
        }

    def value(self, parameters: Mapping[str, Any]) -> Interval | None:
        """Return the interval of a point's typical value; None if it has none."""
        part, i = self._places.get(key(parameters), (0, None))
        return None if i is None else self._values[part].value(i)

    def ratio(self, over: Mapping[str, Any], under: Mapping[str, Any]) -> Interval | None:
        """Return the interval of the ratio of two points; None if they are not compared."""
        (first, i), (second, j) = (self._places.get(key(p), (0, None)) for p in (over, under))
        return None if i is None or j is None or first != second else self._claims[first].ratio(i, j)


def key(parameters: Mapping[str, Any]) -> str:
    """Return the key of a point: its parameters in any order."""
    return repr(sorted(parameters.items()))


def ordinal(value: Any) -> float:
    """Return a level as a number to sort by; words are equal."""
    return float(value) if isinstance(value, int | float) else 0.0
