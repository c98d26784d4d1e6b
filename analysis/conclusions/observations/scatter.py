"""Scatter of trials, pooled over all points of an experiment, on logarithms.

Twelve points of two repetitions give twelve degrees of freedom; each alone gives one. Claims about pairs of points hold together:
pairs are compared step by step (Ryan 1960, Welsch 1977), the widest range of points first, within Tukey's intervals (1949), in Kramer's
form for unequal numbers; if scatters differ, all pairs at once by Games and Howell's (1976), with the scatter pooled within the
levels of the factor that it follows. Outliers are part of neither means nor scatter. Every interval holds the median or the ratio of
medians, which is what charts, tables and answers show; a claim needs both to say the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from statistics import median
from typing import Final, Literal

import numpy as np
import scipy  # optimize and special are loaded when first used; stdtrit is t.ppf, fdtrc is f.sf, without their checks

from analysis.conclusions.observations.outliers import Mask
from analysis.conclusions.observations.scatter_groups import COMMON, ScatterGroups
from analysis.statistics import Interval
from analysis.statistics.spread import SMALLEST_SPREAD, log_variances
from analysis.statistics.spread import pooled as pooled_variances

Source = Literal["repetitions", "warm-ups and control runs", "history", "small effects"]
LEVEL: Final = 0.965
"""Simultaneous level of an experiment's intervals: fewer than 5 % of experiments without an effect claim one."""
VALUE_LEVEL: Final = 0.98
"""Level of one point's interval: times with an exponential tail hold ``LEVEL`` with it, normal logarithms 98 %."""
_SAYS_NOTHING: Final = float(np.log(100))
"""Width on logarithms from which on an interval is left out: a tenth to ten times."""
_MORE: Final = 0.05
"""P-value below which repetitions scatter more than the known scatter."""
SMALLEST: Final = SMALLEST_SPREAD
_REACH: Final = 2.0
"""An interval is extended by this share, over n - 1, of the distance of the farthest outlier, and half as far to the other side: of
three trials the interval holds the outlier. Two of three values that agree by chance are a noisy point, not one with an outlier."""


@dataclass(frozen=True, slots=True)
class Scatter:
    """Standard deviation of the logarithm of one trial, with its degrees of freedom.

    0.05 is about 5 %.
    """

    sd: float
    freedom: float
    source: Source = "repetitions"
    joined: float = 0.0
    """Degrees of freedom of the experiment's own repetitions in a scatter from another source."""

    @property
    def repeated(self) -> float:
        """Return the degrees of freedom of the experiment's own repetitions."""
        return self.freedom if self.source == "repetitions" else self.joined


@dataclass(frozen=True, slots=True)
class Cell:
    """One point on the log scale: median to show, mean without outliers to compare."""

    mean: float
    clean_n: int
    """Values that the mean is made of."""
    middle: float
    """Logarithm of the median of all values."""
    n: int
    below: float = 0.0
    above: float = 0.0
    """Extensions of its interval because of outliers."""

    @classmethod
    def of(cls, values: Sequence[float] | np.ndarray, outliers: Mask | None = None) -> Cell:
        logs = np.log(np.asarray(values, dtype=np.float64))
        is_out = np.zeros(len(logs), dtype=bool) if outliers is None else outliers
        middle, clean = float(np.log(median(values))), logs[~is_out]
        far = logs[is_out] - middle
        low, high = max(0.0, -float(far.min(initial=0.0))), float(far.max(initial=0.0))
        toward = _REACH / (len(logs) - 1) if len(logs) > 1 else 0.0
        below, above = (toward * max(near, other / 2) for near, other in ((low, high), (high, low)))
        return cls(float(clean.mean()), len(clean), middle, len(logs), below, above)


def weight_of_median(n: int) -> float:
    """Return how many normal values have a mean as precise as the median of ``n``.

    2 of 2, 2.2 of 3, 3.3 of 4, 3.5 of 5.

    After the variances of order statistics (Sarhan and Greenberg 1962), within 2.5 % of them.
    """
    if n < 3:
        return float(n)
    return (n + (0.5 if n % 2 else np.pi / 2 - 0.43)) * 2 / np.pi


def pooled(groups: Sequence[Sequence[float] | np.ndarray]) -> Scatter | None:
    """Return the scatter of all groups about their means.

    Parameters
    ----------
    groups
        Values of each group, all positive.

    Returns
    -------
    Scatter or None
        Standard deviation on the natural logarithm; None without repetitions.
    """
    variances, freedom = log_variances(groups)
    return Scatter(*pooled_variances(variances, freedom)) if len(variances) else None


def with_prior(measured: Scatter | None, prior: Scatter | None) -> Scatter | None:
    """Return the own scatter, joined with known scatter if there are few repetitions."""
    if measured is None or prior is None:
        return measured or prior
    more = float(scipy.special.fdtrc(measured.freedom, prior.freedom, (measured.sd / prior.sd) ** 2)) < _MORE
    if more or measured.freedom >= prior.freedom / 4:
        return measured
    freedom = measured.freedom + prior.freedom
    squares = measured.freedom * measured.sd**2 + prior.freedom * prior.sd**2
    return Scatter(float(np.sqrt(squares / freedom)), freedom, prior.source, measured.freedom)


@dataclass(frozen=True, slots=True)
class _Family:
    """Points compared by means; each differs from those from ``differs_from`` on."""

    rank: Mapping[int, int]
    differs_from: np.ndarray
    widths: Sequence[float]


class SimultaneousIntervals:
    """Simultaneous claims about the points of one experiment.

    These are ratios of their medians with intervals. Without repetitions ``prior`` gives the scatter; with neither
    there are no intervals. Printed values are claimed as they are if they differ by more than rounding and a rerun
    could hide. ``other_groups`` are the points of the experiment's other ``slices - 1`` slices: they add to the
    scatter, and the slices' claims hold together (Bonferroni); they spend a
    ``share`` of the error. ``levels`` holds, for each factor, the level of every
    point and other point: if scatters differ, they are pooled within the levels of one factor; if that does not make
    them equal, each point has its own. Other load slows a trial, so values that are far better (``higher_is_better``)
    than the others of their point are no outliers. ``families`` names for each point those that it is compared with:
    choices of one size, loads of one link. Fewer pairs have to hold together then; others get Tukey's interval.
    """

    PRINTED: Final = 1.05

    def __init__(
        self,
        groups: Sequence[Sequence[float]],
        *,
        printed: bool = False,
        prior: Scatter | None = None,
        other_groups: Sequence[Sequence[float]] = (),
        slices: int = 1,
        share: float = 1.0,
        levels: Sequence[Sequence[str]] = (),
        families: Sequence[str] = (),
        higher_is_better: bool = False,
    ) -> None:
        self.printed = printed
        everything = [*groups, *other_groups]
        division = (
            ScatterGroups.of_one(everything)
            if printed
            else ScatterGroups.from_values(everything, levels, higher_is_better=higher_is_better)
        )
        masks, names = division.outliers[: len(groups)], division.of[: len(groups)]
        self.cells = [Cell.of(group, mask) for group, mask in zip(groups, masks, strict=True)]
        self.outliers = [int(mask.sum()) for mask in masks]
        """Number of each point's trials that are no part of the shared scatter."""
        shared = None if printed else division.pooled(COMMON) or division.pooled()
        self.scatter = with_prior(None if shared is None else Scatter(*shared), prior)
        pooled_by_name = {name: division.pooled(name) for name in dict.fromkeys(names)}
        scatters = {name: None if part is None else Scatter(*part) for name, part in pooled_by_name.items()}
        self._group_scatters = [scatters[name] for name in names]
        self._common = [name == COMMON for name in names]
        self.level = 1 - (1 - LEVEL) * share / slices
        """Simultaneous level of this slice."""
        self._families = list(families) or [""] * len(groups)
        self._widths: dict[tuple[int, float], list[float]] = {}

    def ratio(self, i: int, j: int) -> Interval | None:
        """Return the interval of (median of i) / (median of j); None without scatter.

        Where the points are found to differ in a later step, the interval leaves 1 by that step's width.
        """
        if (i, j) not in self._ratios:
            self._ratios[i, j] = self._ratio(i, j)
        return self._ratios[i, j]

    @cached_property
    def _ratios(self) -> dict[tuple[int, int], Interval | None]:
        return {}

    def _ratio(self, i: int, j: int) -> Interval | None:
        estimate = self._error(i, j)
        if estimate is None:
            return None
        error, freedom = estimate
        a, b = self.cells[i], self.cells[j]
        middle = a.mean - b.mean
        width = self._width(i, j, freedom) * error
        near = width if (step := self._step(i, j)) is None else step * error
        low, high = (middle - near, middle + width) if middle > 0 else (middle - width, middle + near)
        low, high = low - a.below - b.above, high + a.above + b.below
        return _interval(low, high, self.change(i, j), self.level, "Tukey, on logarithms", of_ratio=True)

    def change(self, i: int, j: int) -> float:
        """Return the logarithm of (median of i) / (median of j)."""
        return self.cells[i].middle - self.cells[j].middle

    def _width(self, i: int, j: int, freedom: float) -> float:
        """Return the half-width of a pair's interval in standard errors."""
        if self._families[i] == self._families[j] and self._common[i] and self._common[j]:
            return self._steps(self._families.count(self._families[i]), freedom)[-1]
        return self._range(self.level, len(self.cells), freedom)

    def width_of(self, freedom: float) -> float:
        """Return the half-width, in standard errors, of all pairs of the largest family."""
        return self._steps(max(map(self._families.count, self._families)), freedom)[-1]

    def family_of(self, i: int) -> list[int]:
        """Return the points that are compared with this one, itself included."""
        return [k for k, name in enumerate(self._families) if name == self._families[i]]

    def _in_steps(self, i: int) -> bool:
        """Return whether a point is compared stepwise: common scatter, no outlier."""
        return self._common[i] and not self.outliers[i]

    def _step(self, i: int, j: int) -> float | None:
        """Return the width that a pair exceeds in its step, standard errors, or None."""
        if self.scatter is None or self.printed or self._families[i] != self._families[j]:
            return None
        if not (self._in_steps(i) and self._in_steps(j)):
            return None
        family = self._by_steps[self._families[i]]
        first, last = sorted((family.rank[i], family.rank[j]))
        return family.widths[last - first - 1] if last >= family.differs_from[first] else None

    @cached_property
    def _by_steps(self) -> dict[str, _Family]:
        if self.scatter is None:
            return {}
        members: dict[str, list[int]] = {}
        for i, name in enumerate(self._families):
            if self._in_steps(i):
                members.setdefault(name, []).append(i)
        return {name: self._family(family, self.scatter) for name, family in members.items()}

    def _family(self, members: Sequence[int], scatter: Scatter) -> _Family:
        ordered = sorted(members, key=lambda i: self.cells[i].mean)
        means = np.array([self.cells[i].mean for i in ordered])
        squares = 1 / np.array([self.cells[i].clean_n for i in ordered], dtype=np.float64)
        # The widths are those of all points of the family: the others are compared at once, within the widest of them.
        widths, n = self._steps(self._families.count(self._families[members[0]]), scatter.freedom), len(ordered)
        differs_from = np.full(n, n)
        differs = np.ones(1, dtype=bool)
        for span in range(n, 1, -1):
            errors = scatter.sd * np.sqrt(squares[span - 1 :] + squares[: n - span + 1])
            around = differs if span == n else np.r_[True, differs] & np.r_[differs, True]
            width = widths[-1] if span == n else widths[span - 2]
            differs = around & (means[span - 1 :] - means[: n - span + 1] > width * errors)
            if not differs.any():
                break
            firsts = np.flatnonzero(differs)
            differs_from[firsts] = firsts + span - 1
        return _Family({i: rank for rank, i in enumerate(ordered)}, differs_from, widths)

    def _steps(self, points: int, freedom: float) -> list[float]:
        """Return the critical widths of 2 to ``points`` ordered points (Welsch 1977)."""
        if (points, freedom) not in self._widths:
            wrong = (1 - self.level) / len(set(self._families))
            levels = [1 - wrong if p >= points - 1 else (1 - wrong) ** (p / points) for p in range(2, points + 1)]
            widths = [self._range(level, p, freedom) for p, level in enumerate(levels, 2)]
            self._widths[points, freedom] = list(np.maximum.accumulate(widths)) if widths else [np.inf]
        return self._widths[points, freedom]

    def value(self, i: int) -> Interval | None:
        """Return the interval of one point's median; None without scatter."""
        scatter = self.scatter_of(i)
        if scatter is None or self.printed:
            return None
        cell = self.cells[i]
        width = (
            float(scipy.special.stdtrit(scatter.freedom, (1 + VALUE_LEVEL) / 2))
            * scatter.sd
            / np.sqrt(weight_of_median(cell.n))
        )
        low, high = cell.middle - width - cell.below, cell.middle + width + cell.above
        return _interval(low, high, cell.middle, LEVEL, "t, on logarithms, pooled", of_ratio=False)

    def scatter_of(self, i: int) -> Scatter | None:
        """Return the scatter of one point: the shared one, or its own."""
        return self.scatter if self._common[i] else self._group_scatters[i] or self.scatter

    def _error(self, i: int, j: int) -> tuple[float, float] | None:
        return None if self.printed else self._combined({i: 1.0, j: -1.0})

    def _combined(self, weights: Mapping[int, float]) -> tuple[float, float] | None:
        """Return the error and freedom of a weighted sum over points (Satterthwaite 1946)."""
        squares: dict[Scatter, float] = {}
        for i, weight in weights.items():
            scatter = self.scatter_of(i)
            if scatter is None:
                return None
            squares[scatter] = squares.get(scatter, 0.0) + weight**2 / self.cells[i].clean_n * scatter.sd**2
        total = sum(squares.values())
        freedom = total**2 / sum(square**2 / scatter.freedom for scatter, square in squares.items())
        return float(np.sqrt(total)), freedom

    def contrast(self, weights: Sequence[float]) -> tuple[float, float] | None:
        """Return a planned weighted sum of logarithms and its half-width, or None."""
        planned = self._planned(weights)
        return None if planned is None else (planned[1], max(planned[1] - planned[0], planned[2] - planned[1]))

    def _planned(self, weights: Sequence[float]) -> tuple[float, float, float] | None:
        """Return lower end, value and upper end of a planned sum."""
        part = {i: w for i, w in enumerate(weights) if w}
        estimate = None if self.printed else self._combined(part)
        if estimate is None:
            return None
        half = float(scipy.special.stdtrit(estimate[1], (1 + self.level) / 2)) * estimate[0]
        value = sum(w * self.cells[i].mean for i, w in part.items())
        below = sum(w * self.cells[i].below if w > 0 else -w * self.cells[i].above for i, w in part.items())
        above = sum(w * self.cells[i].above if w > 0 else -w * self.cells[i].below for i, w in part.items())
        return value - half - below, value, value + half + above

    def planned_ratio(self, i: int, j: int) -> Interval | None:
        """Return the interval of (median of i) / (median of j) as one planned comparison."""
        planned = self._planned([float(k == i) - float(k == j) for k in range(len(self.cells))])
        if planned is None:
            return None
        return _interval(
            planned[0], planned[2], self.change(i, j), self.level, "t, on logarithms, pooled", of_ratio=True
        )

    def larger(self, i: int, j: int) -> bool:
        """Return whether point i is measurably above point j."""
        if self.printed:
            return self.change(i, j) > float(np.log(self.PRINTED))
        interval = self.ratio(i, j)
        return bool(interval is not None and interval.low is not None and interval.low > 1)

    def differ(self, i: int, j: int) -> bool:
        return self.larger(i, j) or self.larger(j, i)

    def resolution(self) -> float | None:
        """Return the smallest ratio that these repetitions could show; None if unknown."""
        if self.printed:
            return self.PRINTED
        pairs = [(i, j) for i in range(len(self.cells)) for j in range(i)]
        widths = [
            self._width(i, j, estimate[1]) * estimate[0]
            for i, j in pairs
            if (estimate := self._error(i, j)) is not None
        ]
        return float(np.exp(np.median(widths))) if widths else None

    @staticmethod
    def _range(level: float, points: int, freedom: float) -> float:
        rounded = max(1.0, float(np.floor(2 * freedom)) / 2)
        return studentised_range(level, max(points, 2), rounded) / float(np.sqrt(2))


def _interval(low: float, high: float, middle: float, level: float, method: str, *, of_ratio: bool) -> Interval | None:
    """Return an interval from its ends on the log scale, widened to hold ``middle``.

    None if it says nothing: two trials that scatter more than all others give one degree of freedom.
    """
    if high - low > _SAYS_NOTHING and (low <= 0 <= high or not of_ratio):
        return None
    return Interval(float(np.exp(min(low, middle))), float(np.exp(max(high, middle))), level, method)


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(96)
_FARTHEST: Final = 8.0
"""Standard deviations of the normal beyond which nothing counts."""
_LARGEST: Final = 1e9
_SLACK: Final = 1e-3
"""Distance of the bounds of a quantile from exact ones, on its logarithm."""


@lru_cache(maxsize=4096)
def studentised_range(level: float, groups: int, freedom: float) -> float:
    """Return the quantile of the range of ``groups`` equal means, in errors of one.

    Tukey 1949; a hundred times quicker than scipy's adaptive integrals: if scatters differ, every pair has its own freedom.
    """
    logs, weights = _scatter_nodes(freedom)

    def excess(log_q: float) -> float:
        return float(weights @ _normal_range(np.exp(log_q + logs), groups)) - level

    # Of two means it is that of t, and of more at most Bonferroni's.
    pairs = groups * (groups - 1) / 2
    ends = np.log(np.sqrt(2) * scipy.special.stdtrit(freedom, [(1 + level) / 2, 1 - (1 - level) / 2 / pairs]))
    low, high = float(ends[0]) - _SLACK, float(ends[1]) + _SLACK
    try:
        log_quantile = scipy.optimize.brentq(excess, low, high, xtol=1e-6)
    except ValueError:  # an end beyond what the nodes resolve
        log_quantile = scipy.optimize.brentq(excess, -3.0, np.log(_LARGEST), xtol=1e-6)
    return float(np.exp(log_quantile))


def _scatter_nodes(freedom: float) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes of log(estimated / true scatter) and their probabilities."""
    low, high = 0.5 * np.log(scipy.special.chdtri(freedom, (1 - 1e-7, 1e-12)) / freedom)
    logs = low + (high - low) * (_NODES + 1) / 2
    density = freedom * logs - freedom * np.exp(2 * logs) / 2
    weights = _WEIGHTS * np.exp(density - density.max())
    return logs, weights / weights.sum()


def _normal_range(widths: np.ndarray, groups: int) -> np.ndarray:
    """Return the probability that the range of standard normals is below ``widths``."""
    z = _FARTHEST * _NODES
    inside = scipy.special.ndtr(z[:, None]) - scipy.special.ndtr(z[:, None] - widths)
    density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * _FARTHEST * _WEIGHTS
    return np.asarray(groups * density @ inside ** (groups - 1))
