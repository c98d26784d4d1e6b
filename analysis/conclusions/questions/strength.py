"""How strong a claim is, and how many repetitions would make it firm."""

from __future__ import annotations

from math import exp
from typing import Final

from analysis.conclusions.answer import Missing, Strength
from analysis.conclusions.asked import Asked
from analysis.conclusions.observations.grid import Grid
from analysis.conclusions.observations.scatter import Claims, repetitions_needed
from analysis.conclusions.wording import MOST_REPETITIONS, place, repetitions_words
from analysis.scaling import Point

MOST_RESOLVED: Final = 10.0
"""That only changes beyond this would show tells nobody anything."""
_LEAST: Final = 1.02
"""A smaller difference is not worth anybody's repetitions."""


def strength(asked: Asked, claims: Claims) -> Strength:
    """How strong a claim is that the intervals make."""
    if asked.published:
        return "printed"
    if claims.scatter is None:
        return "open"
    return "firm" if claims.scatter.source == "repetitions" else "moderate"


def further(claims: Claims, ratio: float, now: int) -> int:
    """Return the further repetitions of two points that would show this ratio, at least one.

    If the scatter is not known it is taken as 5 %.
    """
    sd, freedom = (claims.scatter.sd, claims.scatter.freedom) if claims.scatter else (0.05, 0.0)
    needed = repetitions_needed(max(ratio, _LEAST), sd, points=len(claims.cells), now=now, freedom=freedom)
    return max(1, min(needed - now, MOST_REPETITIONS))


def settle(asked: Asked, grid: Grid, point: Point, other: Point) -> Missing | None:
    """Repetitions of these two points that would tell whether they differ as they seem to; None of printed values."""
    if asked.published or point is other:
        return None
    apart = abs(grid.cost(point) - grid.cost(other))
    more = further(grid.claims, exp(apart), min(len(asked.values(point)), len(asked.values(other))))
    seconds = None if asked.trial_s is None else 2 * more * asked.trial_s
    names = " and ".join(place(asked.factors, p.parameters) for p in (point, other))
    return Missing(repetitions_words(more, names), ((point.parameters, more), (other.parameters, more)), seconds)
