"""Strength of claims, and the repetitions that would make them conclusive."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp
from typing import Final

from analysis.conclusions.answer import Missing, Strength
from analysis.conclusions.context import ExperimentQuestion
from analysis.conclusions.observations.grid import EQUAL, Grid
from analysis.conclusions.observations.scatter import SimultaneousIntervals, repetitions_needed
from analysis.conclusions.wording import MOST_REPETITIONS, point_words, repetitions_words
from analysis.scaling import Point

MOST_RESOLVED: Final = 10.0
"""Largest resolvable ratio that is worth stating."""
_LEAST: Final = 1.02
"""A smaller difference is not worth repetitions."""
_GUESSED_SCATTER: Final = 0.05


def strength(question: ExperimentQuestion, claims: SimultaneousIntervals) -> Strength:
    """Return how strong a claim is that the intervals make."""
    if question.published:
        return "printed"
    if claims.scatter is None:
        return "open"
    return "firm" if claims.scatter.source == "repetitions" else "moderate"


def settled(grid: Grid, best: Point, equal: Sequence[Point]) -> tuple[Strength, Missing | None]:
    """Return the strength of "these are best", and the repetitions that would make it conclusive.

    It is tentative while one of the ``equal`` ones may be ``EQUAL`` times worse than the best.
    """
    certainty, ratios = strength(grid.question, grid.claims), [grid.compare(point, best)[1] for point in equal]
    if all(ratio is None or ratio.high is None or ratio.high < EQUAL for ratio in ratios):
        return certainty, None
    return "moderate" if certainty == "firm" else certainty, repetitions_to_resolve(
        grid, best, min(equal, key=grid.cost)
    )


def repeat(
    question: ExperimentQuestion, claims: SimultaneousIntervals, points: Sequence[Point], ratio: float, names: str
) -> Missing:
    """Return the repetitions of these points that would show this ratio."""
    sd, freedom = (claims.scatter.sd, claims.scatter.freedom) if claims.scatter else (_GUESSED_SCATTER, 0.0)
    now = min(len(question.values(point)) for point in points)
    needed = repetitions_needed(max(ratio, _LEAST), sd, points=len(claims.cells), now=now, freedom=freedom)
    more = max(1, min(needed - now, MOST_REPETITIONS))
    seconds = None if question.trial_s is None else len(points) * more * question.trial_s
    return Missing(repetitions_words(more, names), tuple((point.parameters, more) for point in points), seconds)


def repetitions_to_resolve(grid: Grid, point: Point, other: Point) -> Missing | None:
    """Return the repetitions that would show if two points differ; None if printed."""
    if grid.question.published or point is other:
        return None
    distance = abs(grid.cost(point) - grid.cost(other))
    names = " and ".join(point_words(grid.question.factors, p.parameters) for p in (point, other))
    return repeat(grid.question, grid.claims, (point, other), exp(distance), names)
