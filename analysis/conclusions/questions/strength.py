"""Strength of claims, and the repetitions that would make them conclusive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from analysis.conclusions.answer import Missing, Strength
from analysis.conclusions.context import ExperimentQuestion
from analysis.conclusions.observations.grid import Grid
from analysis.conclusions.observations.repetitions import Comparison, Range, repetitions_to_settle
from analysis.conclusions.observations.scatter import SimultaneousIntervals
from analysis.conclusions.wording import listed_points, repetitions_words
from analysis.scaling import Point

MOST_RESOLVED: Final = 10.0
"""Largest resolvable ratio that is worth stating."""


def strength(question: ExperimentQuestion, claims: SimultaneousIntervals) -> Strength:
    """Return how strong a claim is that the intervals make."""
    if question.published:
        return "printed"
    if claims.scatter is None:
        return "open"
    return "firm" if claims.scatter.source == "repetitions" else "moderate"


def settled(grid: Grid, best: Point, choices: Sequence[Point]) -> tuple[Strength, Missing | None]:
    """Return the strength of "these are best", and the recommended repetitions.

    It is tentative while a choice that does not differ from the best may be ``equal`` times worse.
    """
    certainty, missing = strength(grid.question, grid.claims), repeat(grid, unsettled(grid, best, choices))
    return "moderate" if missing is not None and certainty == "firm" else certainty, missing


def unsettled(grid: Grid, best: Point, choices: Sequence[Point]) -> list[Comparison]:
    """Return the comparisons of the best point with choices that may be as good."""
    pairs, equal = [], grid.question.equal
    for point in choices:
        _, interval, is_worse = grid.compare(point, best)
        if point is not best and not is_worse and (interval is None or (interval.high or equal) >= equal):
            pairs.append(compared(grid, best, point, equal=equal))
    return pairs


def compared(grid: Grid, first: Point, last: Point, **settled_if: float) -> Comparison:
    return Comparison(grid.index(first), grid.index(last), **settled_if)


def repeat(grid: Grid, comparisons: Sequence[Comparison], names: str = "") -> Missing | None:
    """Return the repetitions that would settle all comparisons.

    None without a comparison, or if the values are printed.
    """
    question = grid.question
    if question.published or not comparisons:
        return None
    more = repetitions_to_settle(grid.claims, comparisons)
    ordered = [grid.points[i] for i in sorted({i for pair in comparisons for i in (pair.first, pair.last)})]
    seconds = None if question.trial_s is None else len(ordered) * more.queued * question.trial_s
    names = names or listed_points(question.factors, ordered)
    return Missing(repetitions_words(more, names), tuple((p.parameters, more.queued) for p in ordered), seconds)


def repeated_once(question: ExperimentQuestion, points: Sequence[Point]) -> Missing | None:
    """Return one more repetition of each point; None without points."""
    if not points:
        return None
    seconds = None if question.trial_s is None else len(points) * question.trial_s
    words = repetitions_words(Range(1, 1), listed_points(question.factors, points))
    return Missing(words, tuple((point.parameters, 1) for point in points), seconds)
