"""How much trials scatter: pooled over all points of an experiment, on the logarithm of a positive quantity.

Twelve points of two repetitions give twelve degrees of freedom, where each alone gives one. Claims about pairs of points hold together:
pairs are told apart step by step (Ryan 1960, Welsch 1977), the widest range of points first, within Tukey's intervals (1949), in Kramer's
form for unequal numbers; where scatters are not alike, all at once by Games and Howell's (1976), with the scatter pooled within the
levels of the factor that it follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

import numpy as np
from scipy import special  # stdtrit is t.ppf, fdtrc is f.sf, without their checks

from analysis.answers.division import Division, by_name
from analysis.answers.studentised import studentised_range
from analysis.statistics import Interval
from analysis.statistics.spread import SMALLEST_SPREAD, log_variances
from analysis.statistics.spread import pooled as pooled_variances

Source = Literal["repetitions", "warm-ups and controls", "history", "small effects"]
LEVEL: Final = 0.965
"""Of all intervals of an experiment together: fewer than 5 of 100 experiments without any effect claim one."""
_MORE: Final = 0.05
"""P-value below which own repetitions scatter more than is known from elsewhere."""
_POWER: Final = 0.8
SMALLEST: Final = SMALLEST_SPREAD


@dataclass(frozen=True, slots=True)
class Scatter:
    """Standard deviation of the logarithm of one trial (0.05 is about 5 %), with its degrees of freedom."""

    sd: float
    freedom: float
    source: Source = "repetitions"


@dataclass(frozen=True, slots=True)
class Cell:
    """One point on the log scale. What is told of it is its median, as in charts and tables; intervals are made about the mean."""

    mean: float
    sd: float
    n: int
    middle: float
    """Logarithm of the median."""

    @classmethod
    def of(cls, values: Sequence[float]) -> Cell:
        logs = np.log(np.asarray(values, dtype=np.float64))
        sd = float(logs.std(ddof=1)) if len(logs) > 1 else 0.0
        return cls(float(logs.mean()), sd, len(logs), float(np.log(np.median(values))))


def pooled(groups: Sequence[Sequence[float]]) -> Scatter | None:
    """Return the scatter of all groups about their own means; None where none was repeated. Values are positive."""
    variances, freedom = log_variances(groups)
    return Scatter(*pooled_variances(variances, freedom)) if len(variances) else None


def known(own: Scatter | None, prior: Scatter | None) -> Scatter | None:
    """Return the scatter to judge by: few repetitions are joined by what is known from elsewhere, unless they scatter more than that."""
    if own is None or prior is None:
        return own or prior
    more = float(special.fdtrc(own.freedom, prior.freedom, (own.sd / prior.sd) ** 2)) < _MORE
    if more or own.freedom >= prior.freedom / 4:
        return own
    freedom = own.freedom + prior.freedom
    squares = own.freedom * own.sd**2 + prior.freedom * prior.sd**2
    return Scatter(float(np.sqrt(squares / freedom)), freedom, prior.source)


@dataclass(frozen=True, slots=True)
class _Family:
    """Points that are compared with each other, by their means: each is told apart from all from ``told_from`` its place on."""

    place: Mapping[int, int]
    told_from: np.ndarray
    widths: Sequence[float]


class Claims:
    """Simultaneous claims about the points of one experiment: ratios of their typical values with intervals.

    Without repetitions ``prior`` gives the scatter; with neither there are no intervals. Printed values are claimed as they
    stand where they differ by more than rounding and a rerun could hide. ``beside`` are the points of the experiment's other
    ``slices - 1`` slices: they tell of the scatter, and the slices' claims hold together (Bonferroni).
    ``levels`` holds, for each factor, the level of every point and of every one beside: where scatters are not alike, they are
    pooled within the levels of one factor, and only where that does not make them alike is each point's its own.
    ``families`` names for each point those that it is compared with: choices of one size, loads of one link. Fewer pairs have to
    hold together then; others get Tukey's interval.
    """

    PRINTED: Final = 1.05

    def __init__(
        self,
        groups: Sequence[Sequence[float]],
        *,
        printed: bool = False,
        prior: Scatter | None = None,
        beside: Sequence[Sequence[float]] = (),
        slices: int = 1,
        levels: Sequence[Sequence[str]] = (),
        families: Sequence[str] = (),
    ) -> None:
        self.cells = [Cell.of(group) for group in groups]
        self.printed = printed
        everything = [*groups, *beside]
        own = None if printed else pooled(everything)
        self.scatter = known(own, prior)
        division = Division([""] * len(everything)) if own is None else Division.found(everything, levels)
        self._pooled = len(set(division.of)) < 2
        scatters = {name: pooled(own) for name, own in by_name(everything, division.of).items()}
        self._own = [scatters[name] for name in division.of[: len(groups)]]
        self.level = 1 - (1 - LEVEL) / slices
        """Of all claims of this slice together."""
        self._families = list(families) or [""] * len(groups)

    def ratio(self, i: int, j: int) -> Interval | None:
        """Return the interval of (typical value of i) / (that of j); None without any knowledge of scatter.

        Where the points are told apart in a later step, the interval leaves 1 by that step's width.
        """
        found = self._error(i, j)
        if found is None:
            return None
        error, freedom = found
        middle = self.cells[i].mean - self.cells[j].mean
        width = self._width(i, j, freedom) * error
        near = width if (told := self._told_by(i, j)) is None else told * error
        low, high = (middle - near, middle + width) if middle > 0 else (middle - width, middle + near)
        return self._holding(low, high, self.change(i, j), self.level, "Tukey, on logarithms")

    def change(self, i: int, j: int) -> float:
        """Return the logarithm of (median of i) / (median of j): what is told of the pair."""
        return self.cells[i].middle - self.cells[j].middle

    @staticmethod
    def _holding(low: float, high: float, told: float, level: float, method: str) -> Interval:
        """The interval from these ends that holds what is told too: the median of skewed values may lie beside the mean's."""
        return Interval(float(np.exp(min(low, told))), float(np.exp(max(high, told))), level, method)

    def _width(self, i: int, j: int, freedom: float) -> float:
        """Half of the interval of a pair in standard errors: with all points, or with those of its family."""
        if self._families[i] == self._families[j] and self._pooled:
            return self._steps(self._families.count(self._families[i]), freedom)[-1]
        return self._range(self.level, len(self.cells), freedom)

    def _told_by(self, i: int, j: int) -> float | None:
        """The width in standard errors that a pair exceeds, with all pairs further apart that lie around it; None where it does not."""
        if self.scatter is None or self.printed or not self._pooled or self._families[i] != self._families[j]:
            return None
        family = self._told[self._families[i]]
        first, last = sorted((family.place[i], family.place[j]))
        return family.widths[last - first - 1] if last >= family.told_from[first] else None

    @cached_property
    def _told(self) -> dict[str, _Family]:
        """By family which pairs are told apart; asked for only where all points share one scatter."""
        if self.scatter is None:
            return {}
        members: dict[str, list[int]] = {}
        for i, name in enumerate(self._families):
            members.setdefault(name, []).append(i)
        return {name: self._family(each, self.scatter) for name, each in members.items()}

    def _family(self, members: Sequence[int], scatter: Scatter) -> _Family:
        ordered = sorted(members, key=lambda i: self.cells[i].mean)
        means = np.array([self.cells[i].mean for i in ordered])
        squares = 1 / np.array([self.cells[i].n for i in ordered], dtype=np.float64)
        widths, n = self._steps(len(ordered), scatter.freedom), len(ordered)
        told_from = np.full(n, n)
        told = np.ones(1, dtype=bool)
        for span in range(n, 1, -1):
            errors = scatter.sd * np.sqrt(squares[span - 1 :] + squares[: n - span + 1])
            around = told if span == n else np.r_[True, told] & np.r_[told, True]
            told = around & (means[span - 1 :] - means[: n - span + 1] > widths[span - 2] * errors)
            if not told.any():
                break
            firsts = np.flatnonzero(told)
            told_from[firsts] = firsts + span - 1
        return _Family({i: place for place, i in enumerate(ordered)}, told_from, widths)

    def _steps(self, points: int, freedom: float) -> list[float]:
        """Widths in standard errors that ranges of 2, 3, ... ``points`` ordered points of a family have to exceed (Welsch 1977)."""
        wrong = (1 - self.level) / len(set(self._families))
        levels = [1 - wrong if p >= points - 1 else (1 - wrong) ** (p / points) for p in range(2, points + 1)]
        widths = [self._range(level, p, freedom) for p, level in enumerate(levels, 2)]
        return list(np.maximum.accumulate(widths)) if widths else [np.inf]

    def value(self, i: int) -> Interval | None:
        """Return the interval of one point's typical value; None without any knowledge of scatter."""
        if self.scatter is None or self.printed:
            return None
        cell, scatter = self.cells[i], self.scatter if self._pooled else self._own[i] or self.scatter
        width = float(special.stdtrit(scatter.freedom, (1 + LEVEL) / 2)) * scatter.sd / np.sqrt(cell.n)
        how = "t, on logarithms, pooled"
        return self._holding(cell.mean - width, cell.mean + width, cell.middle, LEVEL, how)

    def _error(self, i: int, j: int) -> tuple[float, float] | None:
        a, b = self.cells[i], self.cells[j]
        if self.scatter is None or self.printed:
            return None
        first, second = self._own[i], self._own[j]
        if self._pooled or first is None or second is None:
            return self.scatter.sd * float(np.sqrt(1 / a.n + 1 / b.n)), self.scatter.freedom
        if first is second:
            return first.sd * float(np.sqrt(1 / a.n + 1 / b.n)), first.freedom
        own = [scatter.sd**2 / cell.n for scatter, cell in ((first, a), (second, b))]
        freedom = sum(own) ** 2 / (own[0] ** 2 / first.freedom + own[1] ** 2 / second.freedom)
        return float(np.sqrt(sum(own))), freedom

    def contrast(self, weights: Sequence[float]) -> tuple[float, float] | None:
        """Return the sum of weight times logarithm over all points, and half of its interval, as of one comparison planned before
        measuring; None without any knowledge of scatter. The weights add up to 0.
        """
        if self.scatter is None or self.printed:
            return None
        parts = [
            (w * cell.mean, w**2 / cell.n, self.scatter if self._pooled else own or self.scatter)
            for w, cell, own in zip(weights, self.cells, self._own, strict=True)
            if w
        ]
        squares = np.array([share * scatter.sd**2 for _, share, scatter in parts])
        freedom = self.scatter.freedom
        if not self._pooled:  # Satterthwaite
            freedom = float(squares.sum() ** 2 / sum(squares**2 / [scatter.freedom for _, _, scatter in parts]))
        half = float(special.stdtrit(freedom, (1 + self.level) / 2) * np.sqrt(squares.sum()))
        return sum(value for value, _, _ in parts), half

    def planned_ratio(self, i: int, j: int) -> Interval | None:
        """Return the interval of (typical value of i) / (that of j) as of one comparison planned before measuring."""
        found = self.contrast([float(k == i) - float(k == j) for k in range(len(self.cells))])
        if found is None:
            return None
        how = "t, on logarithms, pooled"
        return self._holding(found[0] - found[1], found[0] + found[1], self.change(i, j), self.level, how)

    def larger(self, i: int, j: int) -> bool:
        """Whether point i is measurably above point j."""
        if self.printed:
            return self.change(i, j) > float(np.log(self.PRINTED))
        interval = self.ratio(i, j)
        return bool(interval is not None and interval.low is not None and interval.low > 1)

    def differ(self, i: int, j: int) -> bool:
        return self.larger(i, j) or self.larger(j, i)

    def resolution(self) -> float | None:
        """Return the smallest factor between two points that these repetitions could have shown; None where nothing can be said."""
        if self.printed:
            return self.PRINTED
        pairs = [(i, j) for i in range(len(self.cells)) for j in range(i)]
        widths = [self._width(i, j, found[1]) * found[0] for i, j in pairs if (found := self._error(i, j)) is not None]
        return float(np.exp(np.median(widths))) if widths else None

    @staticmethod
    def _range(level: float, points: int, freedom: float) -> float:
        """The studentised range's quantile, in errors of a difference; freedom is rounded down to what a cache can hold."""
        held = max(1.0, float(np.floor(2 * freedom)) / 2)
        return studentised_range(level, max(points, 2), held) / float(np.sqrt(2))


def repetitions_needed(ratio: float, sd: float, *, points: int, now: int, freedom: float = 0) -> int:
    """Return how many repetitions of each of two points would show this ratio in four of five experiments; 100 at most, more than now.

    ``freedom`` is what the other points and earlier repetitions already tell of the scatter.
    """
    wanted = abs(float(np.log(ratio)))
    if wanted == 0 or sd == 0:
        return now + 1
    pairs = max(points * (points - 1) / 2, 1)
    for n in range(now + 1, 100):
        # Bonferroni's t in place of the studentised range: a little wider, and quicker still.
        known = max(1.0, freedom + 2 * (n - max(now, 1)))
        quantiles = special.stdtrit(known, np.array((1 - (1 - LEVEL) / 2 / pairs, _POWER)))
        if float(quantiles.sum()) * sd * np.sqrt(2 / n) < wanted:
            return n
    return 100
