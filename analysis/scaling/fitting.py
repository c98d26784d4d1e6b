"""Fits of models that are linear in their coefficients, with bootstrap.

Every law of this package is y(x) = sum of c_k f_k(x), so one weighted least-squares solver serves them all. Errors are taken
as relative (5 % of a long run is more seconds than 5 % of a short one), so rows are divided by the mean at their size; on
request as absolute, divided by one number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any, Final, Literal

import numpy as np
import scipy  # optimize and special are loaded when first used; fdtrc is f.sf without its checks

from analysis.scaling.study import Study
from analysis.statistics.summary import Floats

Errors = Literal["relative", "absolute"]
Basis = Callable[[Floats], Floats]
"""(m,) sizes -> (m, k) values of the k basis functions."""

RESAMPLES: Final = 1000
_SEED: Final = 2007


@dataclass(frozen=True, slots=True)
class Sample:
    """One metric over the sizes: means and pooled spread, (m,), in its unit."""

    metric: str
    x: Floats
    y: Floats
    counts: Floats
    scale: Floats
    """Divisor of residuals, shape (m,): the mean at the size, or one number for absolute errors."""
    within: Floats
    """Scaled residuals of all repetitions from their means, inflated for the mean taken out; shape (repetitions,)."""

    @property
    def freedom(self) -> int:
        """Return the degrees of freedom of the repetitions."""
        return int(self.counts.sum()) - len(self.x)

    @property
    def pure_error(self) -> float:
        """Return the pooled scaled variance of one repetition; 0 without repetitions."""
        return float(np.mean(self.within**2)) if self.freedom else 0.0

    def without(self, index: int) -> Sample:
        keep = np.arange(len(self.x)) != index
        return Sample(self.metric, self.x[keep], self.y[keep], self.counts[keep], self.scale[keep], self.within)


def values_by_size(study: Study, metric: str) -> dict[float, Floats]:
    """Return the metric's values of all repetitions by size, smallest first."""
    merged: dict[float, list[Floats]] = {}
    for size, point in study.sized(metric):
        merged.setdefault(size, []).append(point.array(metric))
    return {size: np.concatenate(arrays) for size, arrays in merged.items()}


def sample(study: Study, metric: str, *, reciprocal: bool = False, errors: Errors = "relative") -> Sample | None:
    """Return the values for fitting; None below two sizes, or unless all are positive."""
    by_size = values_by_size(study, metric)
    groups = list(by_size.values())
    if len(groups) < 2 or min(float(g.min()) for g in groups) <= 0:
        return None
    if reciprocal:
        groups = [1 / g for g in groups]
    counts = np.array([len(g) for g in groups], dtype=np.float64)
    means = np.array([g.mean() for g in groups])
    scale = means if errors == "relative" else np.full(len(means), means.mean())
    within = [
        (g - mean) / unit * np.sqrt(len(g) / (len(g) - 1))
        for g, mean, unit in zip(groups, means, scale, strict=True)
        if len(g) > 1
    ]
    x = np.array(list(by_size))
    return Sample(metric, x, means, counts, scale, np.concatenate(within) if within else np.zeros(0))


@dataclass(frozen=True, slots=True)
class Solution:
    """Coefficients of one model on one sample, and how well they do."""

    coefficients: Floats
    fitted: Floats
    """Shape (m,), at the sample's sizes."""
    residual_sum: float
    """Scaled squared residuals summed over all repetitions."""
    freedom: int
    """Sizes less coefficients."""


def solve(data: Sample, basis: Basis, *, nonnegative: bool) -> Solution:
    """Solve weighted least squares; ``nonnegative`` keeps parts from cancelling."""
    design = basis(data.x)
    scale = np.sqrt(data.counts) / data.scale
    a, b = design * scale[:, None], data.y * scale
    solved = scipy.optimize.nnls(a, b)[0] if nonnegative else np.linalg.lstsq(a, b, rcond=None)[0]
    coefficients: Floats = np.asarray(solved, dtype=np.float64)
    fitted = design @ coefficients
    between = float(np.sum(data.counts * ((data.y - fitted) / data.scale) ** 2))
    total = between + data.pure_error * data.freedom
    return Solution(coefficients, fitted, total, len(data.x) - design.shape[1])


def aicc(data: Sample, solution: Solution, parameters: int) -> float | None:
    """Return the second-order Akaike criterion (Hurvich and Tsai 1989), or None.

    It is of scaled residuals; None with too few values.

    ``parameters`` counts coefficients and whatever else was chosen; the variance is added here.
    """
    n, k = float(data.counts.sum()), parameters + 1
    if n - k - 1 <= 0:
        return None
    floor = 1e-24 * n  # an exact fit has no finite likelihood
    return float(n * np.log(max(solution.residual_sum, floor) / n) + 2 * k + 2 * k * (k + 1) / (n - k - 1))


def cross_validation_error(data: Sample, basis: Basis, *, nonnegative: bool) -> float | None:
    """Return the leave-one-size-out error.

    It is mean |error| / mean of truth and prediction. None below three sizes.
    """
    if len(data.x) < 3:
        return None
    errors = []
    for i in range(len(data.x)):
        rest = data.without(i)
        predicted = float((basis(data.x[i : i + 1]) @ solve(rest, basis, nonnegative=nonnegative).coefficients)[0])
        errors.append(2 * abs(predicted - data.y[i]) / (abs(predicted) + data.y[i]))
    return float(np.mean(errors))


def lack_of_fit(data: Sample, solution: Solution) -> float | None:
    """Return the p-value of "the model misses by scatter alone" (F test), or None."""
    if not data.freedom or solution.freedom < 1 or data.pure_error == 0:
        return None
    between = solution.residual_sum - data.pure_error * data.freedom
    ratio = max(between / solution.freedom / data.pure_error, 0.0)
    return float(scipy.special.fdtrc(solution.freedom, data.freedom, ratio))


def bootstrap(
    data: Sample, basis: Basis, solution: Solution, *, nonnegative: bool, resamples: int = RESAMPLES
) -> Floats:
    """Return coefficients of resampled data, shape (resamples, k).

    Each size's mean is drawn around the fit from the pooled residuals of the repetitions and from the model's own misfit beyond
    them; without repetitions from the misfit alone. Each draw is scaled by its chance of having been estimated from few
    degrees of freedom, which gives small studies the longer tails of t. Where nothing is left to estimate an error from, the
    answer is empty, shape (0, k).
    """
    misfit = misfit_variance(data, solution)
    if misfit is None:
        return np.zeros((0, len(solution.coefficients)))
    drawn, state = _drawn_means(data.within.tobytes(), tuple(data.counts.astype(int).tolist()), resamples)
    if misfit > 0:
        rng = np.random.default_rng()
        rng.bit_generator.state = state
        scale = np.sqrt(solution.freedom / rng.chisquare(solution.freedom, resamples))
        drawn = drawn + np.sqrt(misfit) * scale[:, None] * rng.standard_normal(drawn.shape)
    # a relative error belongs to the model's value, not to the one that happened to be measured
    unit = solution.fitted * data.scale / data.y
    return _solve_many(data, basis(data.x), solution.fitted + unit * drawn, nonnegative)


@lru_cache(maxsize=4)
def _drawn_means(within: bytes, counts: tuple[int, ...], resamples: int) -> tuple[Floats, Mapping[str, Any]]:
    """Return scaled errors of each size's mean, and the state of the generator after.

    Cached: all models of a metric draw the same.
    """
    rng, residuals, freedom = np.random.default_rng(_SEED), np.frombuffer(within), sum(counts) - len(counts)
    drawn = np.zeros((resamples, len(counts)))
    if freedom:
        scale = np.sqrt(freedom / rng.chisquare(freedom, resamples))
        for i, count in enumerate(counts):
            drawn[:, i] = scale * rng.choice(residuals, (resamples, count)).mean(axis=1)
    return drawn, rng.bit_generator.state


def misfit_variance(data: Sample, solution: Solution) -> float | None:
    """Return the scaled variance of a size's mean about the model, beyond scatter."""
    if solution.freedom < 1:
        return 0.0 if data.freedom else None
    if not data.freedom:
        return solution.residual_sum / solution.freedom
    p = lack_of_fit(data, solution)
    if p is None or p > 0.05:
        return 0.0
    between = (solution.residual_sum - data.pure_error * data.freedom) / solution.freedom
    return float((between - data.pure_error) / data.counts.mean())


def _solve_many(data: Sample, design: Floats, drawn: Floats, nonnegative: bool) -> Floats:
    scale = np.sqrt(data.counts) / data.scale
    a = design * scale[:, None]
    right = drawn * scale
    coefficients: Floats = right @ np.linalg.pinv(a).T
    if nonnegative and (below := (coefficients < 0).any(axis=1)).any():
        coefficients[below] = nonnegative_solutions(a, right[below])
    return coefficients


def nonnegative_solutions(a: Floats, right: Floats) -> Floats:
    """Solve many non-negative least squares, (m, k) and (n, m): return (n, k).

    The solution is the plain one of the columns that it uses, and the best of those that use no negative one: with the few parts
    of a law all choices of columns are tried at once, a hundred times faster than ``nnls`` row by row.
    """
    parts = a.shape[1]
    best: Floats = np.zeros((len(right), parts))
    least = (right**2).sum(axis=1)
    for count in range(1, parts):  # that of all columns has a negative one
        for chosen in map(list, combinations(range(parts), count)):
            tried = right @ np.linalg.pinv(a[:, chosen]).T
            residuals = ((right - tried @ a[:, chosen].T) ** 2).sum(axis=1)
            better = (tried >= 0).all(axis=1) & (residuals < least)
            least[better] = residuals[better]
            best[better] = 0.0
            best[np.ix_(better, chosen)] = tried[better]
    return best
