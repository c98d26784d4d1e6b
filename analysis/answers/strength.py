"""How strong a claim is, and how many repetitions would make it firm."""

from __future__ import annotations

from typing import Final

from analysis.answers.answer import Strength
from analysis.answers.asked import Asked
from analysis.answers.scatter import Claims, repetitions_needed
from analysis.answers.wording import MOST_REPETITIONS

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
    """Further repetitions of two points that would show this ratio; where scatter is not known it is taken as 5 %."""
    sd, freedom = (claims.scatter.sd, claims.scatter.freedom) if claims.scatter else (0.05, 0.0)
    needed = repetitions_needed(max(ratio, _LEAST), sd, points=len(claims.cells), now=now, freedom=freedom)
    return min(needed - now, MOST_REPETITIONS)
