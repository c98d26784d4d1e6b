"""Repetitions that would settle comparisons of one point with others.

Neither the scatter nor the differences are known: both are drawn from what the trials leave open (the variance by its chi-square
distribution, each point by its normal one), and so are the trials to come. The range is that in which a tenth and nine tenths of the
draws are settled (assurance: O'Hagan, Stevens and Campbell 2005). Taking the estimates for the truth gave numbers that settled one
comparison in three. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from analysis.conclusions.observations.scatter import Scatter, SimultaneousIntervals

MOST_REPETITIONS: Final = 20
ASSURANCES: Final = (0.1, 0.9)
"""Probabilities that the ends of a range of repetitions suffice."""
_DRAWS: Final = 1000
_GUESSED: Final = Scatter(0.05, 4.0, "history")
"""The scatter if no trial shows it."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two points, and the intervals of last / first that settle it.

    The interval excludes 1, or all ratios from ``equal`` on (1: no such limit). ``narrow``: settled if the ends of the interval are
    less than so many times apart. ``offset`` is added to the logarithm.
    """

    first: int
    last: int
    equal: float = 1.0
    offset: float = 0.0
    narrow: float = 0.0


@dataclass(frozen=True, slots=True)
class Range:
    """Further repetitions of each point.

    ``high`` is None if not even ``MOST_REPETITIONS`` would probably do.
    """

    low: int
    high: int | None

    @property
    def queued(self) -> int:
        return MOST_REPETITIONS if self.high is None else self.high


def repetitions_to_settle(
    claims: SimultaneousIntervals,
    compared: Sequence[Comparison],
) -> Range:
    """Return the repetitions that probably settle all comparisons."""
    random = np.random.default_rng(0)
    places = sorted({index for pair in compared for index in (pair.first, pair.last)})
    first, last = ([places.index(getattr(pair, end)) for pair in compared] for end in ("first", "last"))
    offset, equal = np.array([pair.offset for pair in compared]), np.log([pair.equal for pair in compared])
    narrow = np.log([max(pair.narrow, 1.0) for pair in compared])
    scatters = [claims.scatter_of(index) or _GUESSED for index in places]
    sd, freedom = (np.array([getattr(scatter, name) for scatter in scatters]) for name in ("sd", "freedom"))
    measured = np.array([scatter.repeated for scatter in scatters])
    n = np.array([claims.cells[index].clean_n for index in places], dtype=np.float64)
    means = np.array([claims.cells[index].mean for index in places])
    # One draw of the scatter for all points, which share it as a rule.
    least = float(freedom.min())
    true_sd = sd * np.sqrt(least / random.chisquare(least, (_DRAWS, 1)))
    truth = _true_means(claims, places, true_sd, random)
    noise = random.standard_normal(truth.shape)
    low, (least_sure, sure) = None, ASSURANCES
    for more in range(1, MOST_REPETITIONS + 1):
        then = (n * means + more * truth + np.sqrt(more) * true_sd * noise) / (n + more)
        added = len(places) * more
        squares = measured * sd**2 + true_sd**2 * random.chisquare(added, (_DRAWS, 1))
        errors = np.sqrt(squares / (measured + added) / (n + more))
        half = claims.width_of(float(measured.min()) + added) * np.hypot(errors[:, first], errors[:, last])
        apart = np.abs(then[:, last] - then[:, first] + offset)
        is_settled = np.where(narrow > 0, 2 * half < narrow, (apart > half) | (apart + half < equal))
        settled = float(is_settled.all(axis=1).mean())
        if low is None and settled >= least_sure:
            low = more
        if settled >= sure:
            return Range(low or more, more)
    return Range(low or MOST_REPETITIONS, None)


def _true_means(
    claims: SimultaneousIntervals, places: Sequence[int], true_sd: np.ndarray, random: np.random.Generator
) -> np.ndarray:
    """Return draws of the true means.

    Those of one family are drawn towards each other, as the largest difference is larger by luck too. Empirical
    Bayes (Efron and Morris 1973), with the variance between the points drawn as well.
    """
    columns = []
    for column, index in enumerate(places):
        family = claims.family_of(index)
        means, sizes = (np.array([getattr(claims.cells[i], name) for i in family]) for name in ("mean", "clean_n"))
        error = true_sd[:, min(column, true_sd.shape[1] - 1)] / np.sqrt(claims.cells[index].clean_n)
        share, centre = np.ones(_DRAWS), float(means.mean())
        if len(family) > 2:
            squares = ((means - centre) ** 2).sum() / random.chisquare(len(family) - 1, _DRAWS)
            between = np.maximum(squares - error**2 * claims.cells[index].clean_n * (1 / sizes).mean(), 0.0)
            share = between / (between + error**2)
        middle = centre + share * (claims.cells[index].mean - centre)
        columns.append(middle + np.sqrt(share) * error * random.standard_normal(_DRAWS))
    return np.stack(columns, axis=1)
