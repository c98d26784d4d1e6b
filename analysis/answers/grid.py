"""The measured points of an experiment by their parameters, with what may be claimed of them together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import exp
from typing import Any

from analysis.answers.asked import Asked, Factor
from analysis.scaling import Point
from analysis.statistics import Interval


class Grid:
    """The measured points by their parameters, with simultaneous claims about those that are alike in the factors ``apart``."""

    def __init__(self, asked: Asked, apart: Sequence[Factor] = ()) -> None:
        self.asked = asked
        self.points = asked.measured()
        self.claims = asked.claims(self.points, apart)
        # By what they are: points of ten thousand compared value by value took longer than all claims.
        self._places = {id(point): place for place, point in enumerate(self.points)}

    def index(self, point: Point) -> int:
        """The place of one of ``points``, or of one that equals it."""
        place = self._places.get(id(point))
        return self.points.index(point) if place is None else place

    def worse(self, i: int, j: int) -> tuple[float, Interval | None, bool]:
        """(how many times worse i is than j, its interval, whether measurably so)."""
        a, b = (j, i) if self.asked.deciding.higher_is_better else (i, j)
        return (
            exp(self.claims.cells[a].mean - self.claims.cells[b].mean),
            self.claims.ratio(a, b),
            self.claims.larger(a, b),
        )

    def clearly(self, worse: Point, better: Point) -> bool:
        """Whether a point is measurably worse than another."""
        return self.worse(self.index(worse), self.index(better))[2]

    def cost(self, point: Point) -> float:
        """The logarithm of a point's typical value, turned so that less is better."""
        mean = self.claims.cells[self.index(point)].mean
        return -mean if self.asked.deciding.higher_is_better else mean

    def typical(self, point: Point) -> float:
        return exp(self.claims.cells[self.index(point)].mean)

    def along(self, factor: Factor, points: Sequence[Point] | None = None) -> list[list[Point]]:
        """Groups of points that differ in this factor alone, each by its level; groups of one are left out."""
        names = [f.name for f in self.asked.factors if f.name != factor.name]

        def key(point: Point) -> str:
            return repr([point.parameters.get(name) for name in names])

        chosen = sorted(points or self.points, key=lambda p: (key(p), ordinal(p.parameters.get(factor.name))))
        return [members for _, each in groupby(chosen, key=key) if len(members := list(each)) > 1]


def ordinal(value: Any) -> float:
    """A level as a number to sort by; words are equal."""
    return float(value) if isinstance(value, int | float) else 0.0
