"""Distributions fitted to inter-arrival times by maximum likelihood.

Location is fixed at 0. Samples are values x with weights w (how often each occurs), all x > 0. Estimators: Johnson,
Kotz, Balakrishnan, Continuous Univariate Distributions, volume 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import scipy  # special is loaded when first used

Values = npt.NDArray[np.float64]
Parameters = tuple[float, float]


_ITERATIONS: Final = 60


@dataclass(frozen=True, slots=True)
class Sample:
    """Weighted positive values with the sums that every estimator needs."""

    x: Values
    weight: Values
    log_x: Values
    n: float
    mean: float
    mean_log: float
    var_log: float

    @classmethod
    def of(cls, x: Values, weight: Values) -> Sample:
        """Summarise values. Raises ValueError for fewer than two different ones."""
        if len(x) < 2:
            raise ValueError("fewer than two different inter-arrival times")
        log_x, n = np.log(x), float(weight.sum())
        mean_log = float(weight @ log_x) / n
        var_log = float(weight @ (log_x - mean_log) ** 2) / n
        return cls(x, weight, log_x, n, float(weight @ x) / n, mean_log, var_log)


@dataclass(frozen=True, slots=True)
class Distribution:
    """Fit, density and random numbers of one family with at most two parameters."""

    name: str
    parameter_names: tuple[str, ...]
    fit: Callable[[Sample], Parameters]
    log_likelihood: Callable[[Sample, Parameters], float]
    cdf: Callable[[Values, Parameters], Values]
    draw: Callable[[np.random.Generator, int, Parameters], Values]


def _fit_exponential(sample: Sample) -> Parameters:
    return sample.mean, 0.0


def _fit_weibull(sample: Sample) -> Parameters:
    """Solve sum(w x^k ln x)/sum(w x^k) - 1/k = mean(ln x) for k by Newton."""
    centred = sample.log_x - sample.mean_log
    k = math.pi / math.sqrt(6.0 * sample.var_log)
    largest = float(centred.max())
    for _ in range(_ITERATIONS):
        power = sample.weight * np.exp(k * (centred - largest))
        s0, s1 = float(power.sum()), float(power @ centred)
        s2 = float(power @ centred**2)
        value = s1 / s0 - 1 / k
        step = value / (s2 / s0 - (s1 / s0) ** 2 + 1 / k**2)
        k = max(k - step, k / 4)
        if abs(step) < 1e-12 * k:
            break
    s0 = float((sample.weight * np.exp(k * (centred - largest))).sum())
    scale = math.exp(sample.mean_log + largest + math.log(s0 / sample.n) / k)
    return k, scale


def _fit_lognormal(sample: Sample) -> Parameters:
    return sample.mean_log, math.sqrt(sample.var_log)


def _fit_gamma(sample: Sample) -> Parameters:
    """Solve ln a - digamma(a) = ln(mean) - mean(ln x) by Newton (Minka)."""
    s = math.log(sample.mean) - sample.mean_log
    a = (3 - s + math.sqrt((s - 3) ** 2 + 24 * s)) / (12 * s)
    for _ in range(_ITERATIONS):
        step = float((math.log(a) - scipy.special.digamma(a) - s) / (1 / a - scipy.special.polygamma(1, a)))
        a = max(a - step, a / 4)
        if abs(step) < 1e-12 * a:
            break
    return a, sample.mean / a


def _fit_pareto(sample: Sample) -> Parameters:
    smallest = float(sample.x.min())
    return 1 / (sample.mean_log - math.log(smallest)), smallest


DISTRIBUTIONS: Final = (
    Distribution(
        "exponential",
        ("mean_s",),
        _fit_exponential,
        lambda s, p: -s.n * (math.log(p[0]) + s.mean / p[0]),
        lambda x, p: -np.expm1(-x / p[0]),
        lambda rng, n, p: rng.exponential(p[0], n),
    ),
    Distribution(
        "weibull",
        ("shape", "scale_s"),
        _fit_weibull,
        lambda s, p: (
            s.n * (math.log(p[0] / p[1]) + (p[0] - 1) * (s.mean_log - math.log(p[1])))
            - float(s.weight @ np.exp(p[0] * (s.log_x - math.log(p[1]))))
        ),
        lambda x, p: -np.expm1(-((x / p[1]) ** p[0])),
        lambda rng, n, p: p[1] * rng.weibull(p[0], n),
    ),
    Distribution(
        "lognormal",
        ("mu", "sigma"),
        _fit_lognormal,
        lambda s, p: -s.n * (s.mean_log + math.log(p[1]) + 0.5 * math.log(2 * math.pi) + 0.5 * s.var_log / p[1] ** 2),
        lambda x, p: scipy.special.ndtr((np.log(x) - p[0]) / p[1]),
        lambda rng, n, p: rng.lognormal(p[0], p[1], n),
    ),
    Distribution(
        "gamma",
        ("shape", "scale_s"),
        _fit_gamma,
        lambda s, p: s.n * ((p[0] - 1) * s.mean_log - s.mean / p[1] - p[0] * math.log(p[1]) - math.lgamma(p[0])),
        lambda x, p: scipy.special.gammainc(p[0], x / p[1]),
        lambda rng, n, p: rng.gamma(p[0], p[1], n),
    ),
    Distribution(
        "pareto",
        ("alpha", "minimum_s"),
        _fit_pareto,
        lambda s, p: s.n * (math.log(p[0]) + p[0] * math.log(p[1]) - (p[0] + 1) * s.mean_log),
        lambda x, p: np.where(x < p[1], 0.0, -np.expm1(-p[0] * np.log(np.maximum(x, p[1]) / p[1]))),
        lambda rng, n, p: p[1] * (1 + rng.pareto(p[0], n)),
    ),
)


def ks_distance(sample: Sample, cdf: Callable[[Values], Values]) -> float:
    """Return the Kolmogorov-Smirnov distance of weighted values from ``cdf``."""
    above = np.cumsum(sample.weight) / sample.n
    below = np.concatenate([[0.0], above[:-1]])
    model = cdf(sample.x)
    return float(np.maximum(model - below, above - model).max())


def fit_all(sample: Sample) -> list[dict[str, Any]]:
    """Fit all families: parameters, log-likelihood, AIC, KS distance, best first."""
    fits: list[dict[str, Any]] = []
    for family in DISTRIBUTIONS:
        parameters = family.fit(sample)
        if not all(map(math.isfinite, parameters)):
            continue
        log_likelihood = family.log_likelihood(sample, parameters)
        names = family.parameter_names
        fits.append(
            {
                "distribution": family.name,
                "parameters": dict(zip(names, parameters, strict=False)),
                "log_likelihood": log_likelihood,
                "aic": 2 * len(names) - 2 * log_likelihood,
                "ks_distance": ks_distance(sample, _cdf(family, parameters)),
            }
        )
    best = min((row["aic"] for row in fits), default=0.0)
    for row in fits:
        row["d_aic"] = row["aic"] - best
    return sorted(fits, key=lambda row: row["aic"])


def bootstrap_p_values(ordered: Values, replicates: int, *, largest: int = 1000, seed: int = 1) -> dict[str, float]:
    """Return p-values per family by a seeded parametric bootstrap.

    Tables of the Kolmogorov distribution are invalid for fitted parameters (Lilliefors 1967), so every replicate is drawn from the
    fitted distribution and fitted again.
    """
    rng = np.random.default_rng(seed)
    values = np.sort(rng.choice(ordered, largest, replace=False)) if len(ordered) > largest else ordered
    n = len(values)
    p_values = {}
    for family in DISTRIBUTIONS:
        observed, parameters = _refit(family, values)
        drawn = (np.sort(family.draw(rng, n, parameters)) for _ in range(replicates))
        beyond = sum(_refit(family, sample)[0] >= observed for sample in drawn)
        p_values[family.name] = (1 + beyond) / (1 + replicates)
    return p_values


def _refit(family: Distribution, ordered: Values) -> tuple[float, Parameters]:
    sample = Sample.of(ordered, np.ones(len(ordered)))
    parameters = family.fit(sample)
    return ks_distance(sample, _cdf(family, parameters)), parameters


def _cdf(family: Distribution, parameters: Parameters) -> Callable[[Values], Values]:
    return lambda x: family.cdf(x, parameters)
