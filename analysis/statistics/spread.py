"""Scatter of repetitions over several configurations, pooled, on logarithms.

Values are positive. Scatters are compared, and means are tested by them. Three configurations of two repetitions give
three degrees of freedom; each alone gives one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import scipy  # special is loaded when first used; stdtrit is t.ppf, fdtrc and chdtrc the F's and the chi-square's sf, without their checks

from analysis.statistics.summary import Floats, Interval, checked, ratio_interval

SMALLEST_SPREAD: Final = 1e-4
"""Clocks and counters repeat no better; values that repeat exactly would claim any difference."""
UNEQUAL: Final = 0.01
"""P-value of the test of equal scatters below which they are not pooled."""
_KNOWN: Final = 10.0
"""Largest ratio of the ends of an interval that is shown."""


def log_variances(groups: Sequence[Sequence[float] | Floats]) -> tuple[Floats, Floats]:
    """Return variance and freedom of the logarithms of every repeated group.

    Values are positive.
    """
    repeated = [np.asarray(g, dtype=np.float64) for g in groups if len(g) > 1]
    if not repeated:
        return np.zeros(0), np.zeros(0)
    sizes, logs = np.array([len(g) for g in repeated]), np.log(np.concatenate(repeated))
    starts = np.cumsum(sizes) - sizes
    deviations = logs - np.repeat(np.add.reduceat(logs, starts) / sizes, sizes)
    variances = np.add.reduceat(deviations**2, starts) / (sizes - 1)
    return np.maximum(variances, SMALLEST_SPREAD**2), sizes - 1.0


def pooled(variances: Floats, freedom: Floats) -> tuple[float, float]:
    """Return the pooled standard deviation and freedom of at least one group."""
    return float(np.sqrt(freedom @ variances / freedom.sum())), float(freedom.sum())


def equal_variances(variances: Floats, freedom: Floats) -> float:
    """Return the p-value of "all groups scatter equally" (Bartlett 1937).

    1.0 for fewer than two groups.

    Levene's test never separates three repetitions of 1 % and of 20 %, and a false claim about the noisy point
    is worse than a wide interval of it. Pairs often repeat exactly, by rounding: none counts as steadier than a tenth of all.
    """
    k, total = len(variances), freedom.sum()
    if k < 2:
        return 1.0
    steadiest = freedom @ variances / total / 100
    variances = np.where(freedom < 2, np.maximum(variances, steadiest), variances)
    excess = total * np.log(freedom @ variances / total) - float(freedom @ np.log(variances))
    correction = 1 + ((1 / freedom).sum() - 1 / total) / (3 * (k - 1))
    return float(scipy.special.chdtrc(k - 1, max(excess / correction, 0.0)))


def equal_means(groups: Sequence[Sequence[float] | Floats]) -> float | None:
    """Return the p-value of "all groups have the same geometric mean".

    The F test with the scatter of all groups pooled, which has power with two repetitions each; if scatters differ, the
    larger of its p-value and that of Welch's (1951), which alone is too sure of pairs of values.

    Parameters
    ----------
    groups
        Values of each group, all positive.

    Returns
    -------
    float or None
        None for fewer than two groups, or without repetitions.
    """
    variances, freedom = log_variances(groups)
    if len(groups) < 2 or not len(variances):
        return None
    means = np.array([np.log(checked(g)).mean() for g in groups])
    counts = np.array([len(g) for g in groups], dtype=np.float64)
    sd, pooled_freedom = pooled(variances, freedom)
    between = float(counts @ (means - np.average(means, weights=counts)) ** 2) / (len(means) - 1)
    same = float(scipy.special.fdtrc(len(means) - 1, pooled_freedom, between / sd**2))
    if len(variances) == len(groups) and equal_variances(variances, freedom) < UNEQUAL:
        return max(same, _welch(means, variances, counts))
    return same


def _welch(means: Floats, variances: Floats, counts: Floats) -> float:
    weights, k = counts / variances, len(means)
    between = float(weights @ (means - np.average(means, weights=weights)) ** 2) / (k - 1)
    spare = float(((1 - weights / weights.sum()) ** 2 / (counts - 1)).sum())
    return float(scipy.special.fdtrc(k - 1, (k**2 - 1) / (3 * spare), between / (1 + 2 * (k - 2) / (k**2 - 1) * spare)))


class PooledIntervals:
    """Intervals of several configurations' values and ratios.

    They use the pooled scatter if it is equal, else each its own. An interval whose ends differ by more than ten times
    is none. Values are positive; others have no interval.
    """

    def __init__(self, groups: Sequence[Sequence[float] | Floats], *, level: float = 0.95) -> None:
        self._level = level
        positive = all(len(g) and np.min(g) > 0 for g in groups)
        variances, freedom = log_variances(groups) if positive else (np.zeros(0), np.zeros(0))
        is_equal = len(variances) > 0 and equal_variances(variances, freedom) >= UNEQUAL
        self._pooled = pooled(variances, freedom) if is_equal else None

    def value(self, values: Sequence[float] | Floats) -> Interval | None:
        """Return the interval of one configuration's geometric mean."""
        x = checked(values)
        if x.min() <= 0:
            return None
        logs = np.log(x)
        if self._pooled is not None:
            (sd, freedom), how = self._pooled, "scatter of all sizes together"
        elif len(x) > 1:
            sd, freedom, how = float(logs.std(ddof=1)), len(x) - 1.0, "own scatter"
        else:
            return None
        return self._around(float(logs.mean()), sd / len(x) ** 0.5, freedom, f"t interval of the geometric mean, {how}")

    def ratio(self, over: Sequence[float] | Floats, under: Sequence[float] | Floats) -> Interval | None:
        """Return the interval of the ratio of two geometric means."""
        a, b = checked(over), checked(under)
        if min(a.min(), b.min()) <= 0:
            return None
        if self._pooled is None:
            return if_bounded(ratio_interval(a, b, level=self._level))
        sd, freedom = self._pooled
        middle = float(np.log(a).mean() - np.log(b).mean())
        how = "t interval of the ratio of geometric means, scatter of all sizes together"
        return self._around(middle, sd * (1 / len(a) + 1 / len(b)) ** 0.5, freedom, how)

    def _around(self, middle: float, error: float, freedom: float, how: str) -> Interval | None:
        half = float(scipy.special.stdtrit(freedom, (1 + self._level) / 2)) * error
        return if_bounded(Interval(float(np.exp(middle - half)), float(np.exp(middle + half)), self._level, how))


def if_bounded(interval: Interval | None) -> Interval | None:
    """Return the interval of a positive quantity; None if its ends differ 10 times."""
    if interval is None or interval.low is None or interval.high is None:
        return interval
    return interval if interval.high <= _KNOWN * interval.low else None
