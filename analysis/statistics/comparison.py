"""Groups of trials against a baseline: ratio, test, multiplicity, effect size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import combinations
from math import comb
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import scipy  # stats and special are loaded when first used; stdtr is t.cdf, without its checks

from analysis.catalogue import METRICS
from analysis.statistics.summary import MINIMUM_REPETITIONS, Floats, Interval, checked, ratio_interval, welch

Outcome = Literal["higher", "lower", "no clear change", "too few repetitions"]
Groups = Mapping[str, Mapping[str, Sequence[float]]]
"""label -> metric id -> one value per counted trial."""

WELCH: Final = "Welch's t test on logarithms"
_ROUNDING: Final = 1e-12
"""Values that differ by less, as a share of the largest one, repeat exactly."""
_EXACT_UP_TO: Final = 20_000
_EFFECTS: Final = ((0.147, "negligible"), (0.33, "small"), (0.474, "medium"))
"""Bounds of |Cliff's delta| of Romano et al. 2006; "large" above."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One metric of one group against the baseline. What cannot be computed is None."""

    metric: str
    group: str
    baseline: str
    n: int
    n_baseline: int
    median: float
    baseline_median: float
    difference: float
    """Difference of the medians, in the metric's unit."""
    ratio: float | None
    """Ratio of the medians; None if the baseline's is zero."""
    ratio_interval: Interval | None
    p_value: float | None
    test: str
    p_adjusted: float | None
    cliffs_delta: float | None
    """P(group > baseline) - P(group < baseline), -1 to 1."""
    effect: str
    """negligible, small, medium, large; empty if not tested."""
    hedges_g: float | None
    verdict: Outcome

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def family(metric: str) -> str:
    """Return the family of a metric that is corrected together.

    The headline metrics, a section of the catalogue, or a workload's figures.
    """
    metric_of = METRICS.get(metric)
    if metric_of is not None:
        return "headline" if metric_of.headline else metric_of.section
    prefix, dot, _ = metric.partition(".")
    return prefix if dot else ""


def compare_groups(
    groups: Groups,
    *,
    baseline: str,
    level: float = 0.95,
    families: Callable[[str], str] = family,
) -> list[Comparison]:
    """Compare every other group with ``baseline`` in every metric that both have.

    Positive values are tested by Welch's t on logarithms, the test of the interval that is shown; others, and values that repeat
    exactly, by a permutation test of ranks. The correction (Benjamini and Hochberg 1995) runs over all comparisons of a family of
    metrics: over all sixty at once no test of five trials against five could find that one of them changed. Intervals are widened
    by the same correction, so that an interval excludes 1 exactly if its verdict is "higher" or "lower". KeyError for an unknown
    baseline.
    """
    reference = groups[baseline]
    comparisons = [
        _compare(metric, label, checked(values), baseline, checked(reference[metric]), level)
        for label, metrics in groups.items()
        if label != baseline
        for metric, values in metrics.items()
        if len(values) and len(reference.get(metric, ()))
    ]
    tested: dict[str, list[int]] = defaultdict(list)
    for i, comparison in enumerate(comparisons):
        if comparison.p_value is not None:
            tested[families(comparison.metric)].append(i)
    for members in tested.values():
        adjusted = scipy.stats.false_discovery_control([comparisons[i].p_value or 0.0 for i in members])
        for i, p in zip(members, adjusted, strict=True):
            c = comparisons[i]
            interval = c.ratio_interval
            if c.test == WELCH and len(members) > 1:
                sides = groups[c.group][c.metric], groups[baseline][c.metric]
                interval = _corrected_interval(*sides, (c.p_value or 0.0) / p if p else 1 / len(members), level)
            c = replace(c, p_adjusted=float(p), ratio_interval=interval)
            comparisons[i] = replace(c, verdict=_verdict(c, p, 1 - level))
    return comparisons


def _corrected_interval(a: Sequence[float], b: Sequence[float], share: float, level: float) -> Interval | None:
    """Return the interval at the level at which the corrected test of a pair decides.

    ``share`` is p / corrected p: the test finds a difference if p is at most that share of 1 - level.
    """
    interval = ratio_interval(a, b, level=1 - (1 - level) * share)
    if interval is None:
        return None
    return replace(interval, level=level, method=f"{interval.method}, corrected as its p value (Benjamini-Hochberg)")


def _compare(metric: str, group: str, a: Floats, baseline: str, b: Floats, level: float) -> Comparison:
    median, base = float(np.median(a)), float(np.median(b))
    tested = _test(a, b)
    p, test = tested or (None, "")
    delta = cliffs_delta(a, b) if tested else None
    return Comparison(
        metric=metric,
        group=group,
        baseline=baseline,
        n=len(a),
        n_baseline=len(b),
        median=median,
        baseline_median=base,
        difference=median - base,
        ratio=median / base if base else None,
        ratio_interval=ratio_interval(a, b, level=level),
        p_value=p,
        test=test,
        p_adjusted=None,
        cliffs_delta=delta,
        effect="" if delta is None else effect_word(delta),
        hedges_g=hedges_g(a, b) if tested else None,
        verdict="too few repetitions",
    )


def _test(a: Floats, b: Floats) -> tuple[float, str] | None:
    """Return p-value and name of the test of a pair; None below three values each."""
    if min(len(a), len(b)) < MINIMUM_REPETITIONS:
        return None
    return welch_test(a, b) or rank_test(a, b)


def welch_test(a: Floats, b: Floats) -> tuple[float, str] | None:
    """Return the p-value of Welch's t on logarithms and its name, or None.

    None for values that are not positive, or that all repeat exactly.
    """
    if min(a.min(), b.min()) <= 0 or all(np.ptp(x) <= _ROUNDING * x.max() for x in (a, b)):
        return None
    difference, error, freedom = welch(np.log(a), np.log(b))
    return float(2 * scipy.special.stdtr(freedom, -abs(difference) / error)), WELCH


def _verdict(comparison: Comparison, p: float, alpha: float) -> Outcome:
    interval = comparison.ratio_interval
    if comparison.test == WELCH and interval is not None and interval.low is not None:
        return "no clear change" if p > alpha else "higher" if interval.low > 1 else "lower"
    if p <= alpha and comparison.cliffs_delta:
        return "higher" if comparison.cliffs_delta > 0 else "lower"
    smallest = 2 / comb(comparison.n + comparison.n_baseline, comparison.n)
    # Ranks of three against three can never reach 5 %, nor can five against five among many metrics when no two values
    # overlap: that is a lack of trials, not a lack of difference.
    is_separate = comparison.cliffs_delta is not None and abs(comparison.cliffs_delta) == 1
    return "too few repetitions" if smallest > alpha or is_separate else "no clear change"


def rank_test(a: Floats, b: Floats) -> tuple[float, str]:
    """Return p-value and name of a permutation test of ranks (Mann and Whitney 1947).

    Exact up to 20 000 arrangements, else by the normal approximation.
    """
    n, total = len(a), len(a) + len(b)
    if comb(total, n) > _EXACT_UP_TO:
        p = float(scipy.stats.mannwhitneyu(a, b, method="asymptotic").pvalue)
        return p, "permutation test of ranks, normal approximation"
    ranks = scipy.stats.rankdata(np.concatenate([a, b]))
    sums = ranks[_arrangements(total, n)].sum(axis=1) - n * ranks.mean()
    return float(np.mean(np.abs(sums) >= abs(sums[0]) - 1e-9)), "exact permutation test of ranks"


@lru_cache(maxsize=8)
def _arrangements(total: int, n: int) -> npt.NDArray[np.int64]:
    return np.array(list(combinations(range(total), n)))  # kept for the next page: trials come in few numbers


def cliffs_delta(a: Floats, b: Floats) -> float:
    """Return P(a > b) - P(a < b) over all pairs (Cliff 1993)."""
    ordered = np.sort(b)
    below, not_above = np.searchsorted(ordered, a, "left").sum(), np.searchsorted(ordered, a, "right").sum()
    return float(below + not_above - len(a) * len(b)) / (len(a) * len(b))


def effect_word(delta: float) -> str:
    """Return the word for a Cliff's delta (Romano et al. 2006)."""
    return next((word for bound, word in _EFFECTS if abs(delta) < bound), "large")


def hedges_g(a: Floats, b: Floats) -> float | None:
    """Return Hedges' g, corrected for small samples (1981); None without spread."""
    freedom = len(a) + len(b) - 2
    if freedom < 1:
        return None
    pooled = ((len(a) - 1) * a.var(ddof=1) + (len(b) - 1) * b.var(ddof=1)) / freedom
    if pooled == 0:
        return None
    return float((a.mean() - b.mean()) / np.sqrt(pooled) * (1 - 3 / (4 * freedom - 1)))


def differs_anywhere(samples: Sequence[Sequence[float]]) -> float:
    """Return the p-value of "all configurations have the same mean".

    It is the larger one of an F test on logarithms and Kruskal-Wallis.

    The F test sees small effects with few repetitions; the rank test keeps one far outlier from making a finding. Values that
    are not positive are compared as they are. 1.0 where fewer than two configurations have two values each.
    """
    groups = [checked(s) for s in samples if len(s) >= 2]
    if len(groups) < 2:
        return 1.0
    pooled = np.concatenate(groups)
    if np.ptp(pooled) == 0:
        return 1.0
    if pooled.min() > 0:
        groups = [np.log(g) for g in groups]
    spread = max(float(g.std()) for g in groups)
    by_rank = _equal_ranks(groups)
    if spread <= 1e-12 * max(1.0, float(np.abs(pooled).max())):
        # counts that repeat exactly: any difference is one, once there are trials enough to rank
        return 0.0 if by_rank < 0.05 else by_rank
    by_mean = _equal_means(groups)
    return by_mean if by_rank < 0.05 else max(by_mean, by_rank)


def _equal_ranks(groups: Sequence[Floats]) -> float:
    """Return the p-value of Kruskal and Wallis (1952), with ties.

    The function of scipy takes 20 ms for its checks.
    """
    sizes = np.array([len(g) for g in groups])
    _, places, ties = np.unique(np.concatenate(groups), return_inverse=True, return_counts=True)
    ranks, n = (np.cumsum(ties) - (ties - 1) / 2)[places], int(sizes.sum())
    sums = np.add.reduceat(ranks, np.cumsum(sizes) - sizes)
    h = 12 / (n * (n + 1)) * float((sums**2 / sizes).sum()) - 3 * (n + 1)
    return float(scipy.special.chdtrc(len(groups) - 1, h / (1 - float((ties**3.0 - ties).sum()) / (float(n) ** 3 - n))))


def _equal_means(groups: Sequence[Floats]) -> float:
    """Return the p-value of the F test of equal means."""
    values, sizes = np.concatenate(groups), np.array([len(g) for g in groups])
    means = np.array([g.mean() for g in groups])
    within = float(((values - np.repeat(means, sizes)) ** 2).sum())
    between = float(sizes @ (means - values.mean()) ** 2)
    freedom, spare = len(groups) - 1, len(values) - len(groups)
    return float(scipy.special.fdtrc(freedom, spare, between / freedom / (within / spare)))
