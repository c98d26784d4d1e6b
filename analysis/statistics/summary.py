"""Summaries of repetitions: centre, spread, interval, outliers, trials needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import scipy  # special is loaded when first used; stdtrit is t.ppf without its checks, which cost more than the rest of a summary

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int32]
Method = Literal["t", "bootstrap"]

MINIMUM_REPETITIONS: Final = 3
"""Below this no difference between two configurations is claimed: two values give a spread with one degree of freedom."""
_BOOTSTRAP_FROM: Final = 10
"""Below 10 values the percentiles of a bootstrap are too close together (Hesterberg 2015, section 4.1); t is used."""
_RESAMPLES: Final = 4000
_SEED: Final = 2007
"""Resampling is repeatable: the same values always give the same interval on every page."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval, in the unit of the values, and its method.

    None is an end that the data do not bound.
    """

    low: float | None
    high: float | None
    level: float
    method: str


@dataclass(frozen=True, slots=True)
class SampleSummary:
    """Repetitions of one quantity.

    ``interval`` is of the mean ("t") or the median ("bootstrap") as its method says.
    """

    n: int
    median: float
    mean: float
    sd: float | None
    """Sample standard deviation (n - 1); None for one value."""
    minimum: float
    maximum: float
    interval: Interval | None
    outliers: tuple[int, ...]
    """Positions in the values; they count in every figure above."""
    enough: bool
    """At least MINIMUM_REPETITIONS."""


def summarise(values: Sequence[float], *, level: float = 0.95, method: Method | None = None) -> SampleSummary:
    """Summarise repetitions.

    Parameters
    ----------
    values
        Repetitions in any unit.
    level
        Level of the interval.
    method
        "t" or "bootstrap"; None is t below 10 values, else bootstrap.

    Raises
    ------
    ValueError
        For no values or for values that are not finite.
    """
    x = checked(values)
    chosen = method or ("t" if len(x) < _BOOTSTRAP_FROM else "bootstrap")
    return SampleSummary(
        n=len(x),
        median=float(np.median(x)),
        mean=float(x.mean()),
        sd=float(x.std(ddof=1)) if len(x) > 1 else None,
        minimum=float(x.min()),
        maximum=float(x.max()),
        interval=mean_interval(x, level=level) if chosen == "t" else median_interval(x, level=level),
        outliers=outliers(x),
        enough=len(x) >= MINIMUM_REPETITIONS,
    )


def checked(values: Sequence[float] | Floats) -> Floats:
    """Return the values, shape (n,); ValueError if they are empty or not finite."""
    x = np.asarray(values, dtype=np.float64)
    if x.ndim != 1 or not len(x):
        raise ValueError("at least one value is needed")
    if not np.isfinite(x).all():
        raise ValueError("values must be finite numbers")
    return x


def mean_interval(values: Sequence[float] | Floats, *, level: float = 0.95) -> Interval | None:
    """Return Student's t interval of the mean; None below two values.

    Of positive values it is made on logarithms, for the geometric mean: a time of -11 to 18 s cannot occur. Of values that are
    not negative but may be zero (counts), it ends at zero.
    """
    x = checked(values)
    if len(x) < 2:
        return None
    low, high = _t_ends(x, float(scipy.special.stdtrit(len(x) - 1, (1 + level) / 2)) / float(np.sqrt(len(x))))
    name = "t interval of the geometric mean" if x.min() > 0 else "t interval of the mean"
    return Interval(low, high, level, name)


def moments_interval(
    mean: float, sd: float, n: int, *, smallest: float, level: float = 0.95
) -> tuple[float, float] | None:
    """Return Student's t interval of a mean from its moments.

    Parameters
    ----------
    mean, sd, n
        Of the values, in their unit.
    smallest
        Smallest value. If it is positive the interval is made on logarithms, whose standard deviation is about that of the
        values over their mean; if it is zero, the interval ends there.
    level
        Level of the interval.

    Returns
    -------
    tuple or None
        (low, high); None below two values.
    """
    if n < 2:
        return None
    half = float(scipy.special.stdtrit(n - 1, (1 + level) / 2)) * sd / float(np.sqrt(n))
    if smallest > 0:
        return mean * float(np.exp(-half / mean)), mean * float(np.exp(half / mean))
    return (max(mean - half, 0.0) if smallest == 0 else mean - half), mean + half


def single_value_limits(values: Sequence[float] | Floats, *, level: float = 0.95) -> tuple[float, float] | None:
    """Return the limits of one further value; None below two values."""
    x = checked(values)
    if len(x) < 2:
        return None
    return _t_ends(x, float(scipy.special.stdtrit(len(x) - 1, (1 + level) / 2)) * float(np.sqrt(1 + 1 / len(x))))


def _t_ends(x: Floats, deviations: float) -> tuple[float, float]:
    """Return the mean -/+ so many standard deviations; on logarithms if positive."""
    y = np.log(x) if x.min() > 0 else x
    half = deviations * float(y.std(ddof=1))
    low, high = float(y.mean()) - half, float(y.mean()) + half
    if x.min() > 0:
        return float(np.exp(low)), float(np.exp(high))
    return (max(low, 0.0) if x.min() >= 0 else low), high


def median_interval(values: Sequence[float] | Floats, *, level: float = 0.95) -> Interval | None:
    """Return the percentile bootstrap interval of the median; None below three values.

    Efron and Tibshirani 1993, chapter 13.

    The middle one of n uniform draws is Beta distributed (David and Nagaraja 2003, section 2.3), so it is drawn itself: the same
    distribution as resampling all n values, at a hundredth of the cost for a long history.
    """
    x = checked(values)
    if len(x) < 3:
        return None
    low, high = np.quantile(_resampled_medians(np.sort(x)), [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high), level, f"bootstrap of the median, {_RESAMPLES} resamples")


def _resampled_medians(x: Floats) -> Floats:
    middle, following = _middle_places(len(x))
    return x[middle] if following is None else (x[middle] + x[following]) / 2


@lru_cache(maxsize=256)
def _middle_places(n: int) -> tuple[Places, Places | None]:
    """Return the middle places of each resample of ``n`` sorted values.

    For an even ``n`` also the next place; they are the same for all samples.
    """
    rng = np.random.default_rng(_SEED)
    middle = (n + 1) // 2
    position = rng.beta(middle, n - middle + 1, _RESAMPLES)
    first = (n * position).astype(np.int32)
    if n % 2:
        return first, None
    # given the middle one, the next is the least of the n - middle draws above it
    following = position + (1 - position) * (1 - rng.random(_RESAMPLES) ** (1 / (n - middle)))
    return first, np.minimum(n * following, n - 1).astype(np.int32)


def ratio_interval(
    numerator: Sequence[float] | Floats, denominator: Sequence[float] | Floats, *, level: float = 0.95
) -> Interval | None:
    """Return Welch's interval of the ratio of two geometric means, on logarithms.

    Parameters
    ----------
    numerator, denominator
        Values of one unit.
    level
        Level of the interval.

    Returns
    -------
    Interval or None
        None if a value is not positive or a side has fewer than two values.
    """
    a, b = checked(numerator), checked(denominator)
    if min(len(a), len(b)) < 2 or min(a.min(), b.min()) <= 0:
        return None
    difference, error, freedom = welch(np.log(a), np.log(b))
    half = float(scipy.special.stdtrit(freedom, (1 + level) / 2)) * error if error > 0 else 0.0
    return Interval(
        float(np.exp(difference - half)),
        float(np.exp(difference + half)),
        level,
        "t interval of the ratio of geometric means (Welch)",
    )


def welch(a: Floats, b: Floats) -> tuple[float, float, float]:
    """Return the difference of the means, its error and Welch-Satterthwaite freedom."""
    va, vb = a.var(ddof=1) / len(a), b.var(ddof=1) / len(b)
    total = float(va + vb)
    if total == 0:
        return float(a.mean() - b.mean()), 0.0, float(len(a) + len(b) - 2)
    freedom = total**2 / float(va**2 / (len(a) - 1) + vb**2 / (len(b) - 1))
    return float(a.mean() - b.mean()), total**0.5, freedom


def outliers(values: Sequence[float] | Floats) -> tuple[int, ...]:
    """Return the positions of outliers; none below four values.

    Below ten values by Grubbs' test at 1 % (Grubbs 1969), which is exact for few normal values; from ten on by a modified z-score
    above 3.5 (Iglewicz and Hoaglin 1993), which several outliers cannot hide from. Where more than half of the values are
    equal, the mean absolute deviation replaces the median one, as there.
    """
    x = checked(values)
    if len(x) < 10:
        return _grubbs(x)
    distance = np.abs(x - np.median(x))
    scale = float(np.median(distance)) / 0.6745 or float(distance.mean()) * 1.2533
    if scale == 0:
        return ()
    return tuple(int(i) for i in np.flatnonzero(distance / scale > 3.5))


def _grubbs(x: Floats) -> tuple[int, ...]:
    n = len(x)
    if n < 4 or np.ptp(x) == 0:
        return ()
    farthest = int(np.abs(x - x.mean()).argmax())
    score = abs(x[farthest] - x.mean()) / x.std(ddof=1)
    t = scipy.special.stdtrit(n - 2, 1 - 0.01 / (2 * n))
    critical = (n - 1) / np.sqrt(n) * np.sqrt(t**2 / (n - 2 + t**2))
    return (farthest,) if score > critical else ()


def repetitions_needed(
    values: Sequence[float], *, relative_half_width: float = 0.05, level: float = 0.95, assurance: float = 0.5
) -> int | None:
    """Return the repetitions for a t interval of this half-width.

    Taken for the true spread is the bound that it is below with probability ``assurance``, by the chi-square distribution of the
    variance: the median of what the values leave open, or more.

    Parameters
    ----------
    values
        Repetitions so far.
    relative_half_width
        Half-width as a share of the mean.
    level
        Level of the interval.
    assurance
        Probability that so many are enough.

    Returns
    -------
    int or None
        None below two values.
    """
    x = checked(values)
    if len(x) < 2 or x.mean() == 0:
        return None
    bound = (len(x) - 1) / scipy.special.chdtri(len(x) - 1, assurance)
    relative = float(x.std(ddof=1) / abs(x.mean()) * np.sqrt(bound))
    if relative == 0:
        return MINIMUM_REPETITIONS
    n = MINIMUM_REPETITIONS
    while n < 10_000 and scipy.special.stdtrit(n - 1, (1 + level) / 2) * relative / np.sqrt(n) > relative_half_width:
        n += 1
    return n
