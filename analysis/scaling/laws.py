"""The named laws of scaling, each linear in coefficients that have a meaning.

constant    T = T1
Amdahl      T = T1 (s + (1 - s)/N)                                    Amdahl 1967; s: serial share of the work
USL         T = T1 (1 + sigma (N - 1) + kappa N (N - 1)) / N          Gunther 1993; sigma: contention, kappa: crosstalk
Gustafson   1/T = (1/T1) ((1 - s) + s/N), work growing with N         Gustafson 1988; scaled speed-up N T1/T = N - s (N - 1)

T1 is the fitted value on one host, which need not have been measured. Coefficients are kept from being negative: a negative
contention or crosstalk (superlinear speed-up) shows as 0 and a misfit, instead of as a nonsensical optimum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from analysis.numbers import significant
from analysis.scaling.fitting import RESAMPLES, Basis, sample, solve
from analysis.scaling.models import Fit, percentiles, quality
from analysis.scaling.speedup import Estimate
from analysis.scaling.study import Study
from analysis.statistics.summary import Floats

_Readings = Callable[[Floats], dict[str, Floats]]
"""Coefficients (b, k) -> named parameters (b,)."""


@dataclass(frozen=True, slots=True)
class Law:
    """A law: its basis, parameters and formula."""

    model: str
    title: str
    basis: Basis
    read: _Readings
    formula: Callable[[dict[str, float]], str]
    best: Callable[[Floats], Floats] | None = None
    reciprocal: bool = False


def _constant_basis(x: Floats) -> Floats:
    return np.ones((len(x), 1))


def _amdahl_basis(x: Floats) -> Floats:
    return np.column_stack([np.ones_like(x), 1 / x])


def _usl_basis(x: Floats) -> Floats:
    return np.column_stack([1 / x, (x - 1) / x, x - 1])


def _serial_share(c: Floats) -> dict[str, Floats]:
    total = c.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return {"t1": total, "serial_share": c[:, 0] / total}


def _gustafson_share(c: Floats) -> dict[str, Floats]:
    total = c.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return {"t1": 1 / total, "serial_share": c[:, 1] / total}


def _usl_parameters(c: Floats) -> dict[str, Floats]:
    with np.errstate(divide="ignore", invalid="ignore"):
        return {"t1": c[:, 0], "sigma": c[:, 1] / c[:, 0], "kappa": c[:, 2] / c[:, 0]}


def _usl_best(c: Floats) -> Floats:
    """Return sqrt((1 - sigma)/kappa), at least 1; infinite without crosstalk."""
    with np.errstate(divide="ignore", invalid="ignore"):
        squared = np.maximum(c[:, 0] - c[:, 1], 0) / c[:, 2]
    return np.where(c[:, 2] > 0, np.maximum(np.sqrt(squared), 1.0), np.inf)


CONSTANT = Law("constant", "Constant", _constant_basis, lambda c: {"t1": c[:, 0]}, lambda p: significant(p["t1"]))
AMDAHL = Law(
    "amdahl",
    "Amdahl's law",
    _amdahl_basis,
    _serial_share,
    lambda p: (
        f"{significant(p['t1'])} ({significant(p['serial_share'], 3)} + {significant(1 - p['serial_share'], 3)} / N)"
    ),
)
USL = Law(
    "usl",
    "Universal Scalability Law",
    _usl_basis,
    _usl_parameters,
    lambda p: (
        f"{significant(p['t1'])} (1 + {significant(p['sigma'], 3)} (N - 1) + {significant(p['kappa'], 3)} N (N - 1)) / N"
    ),
    _usl_best,
)
GUSTAFSON = Law(
    "gustafson",
    "Gustafson's law",
    _amdahl_basis,
    _gustafson_share,
    lambda p: f"{significant(p['t1'])} N / (N - {significant(p['serial_share'], 3)} (N - 1))",
    reciprocal=True,
)


def fit_law(law: Law, study: Study, metric: str, *, resamples: int = RESAMPLES) -> Fit | None:
    """Fit one law; None if sizes are fewer than coefficients or not all positive."""
    data = sample(study, metric, reciprocal=law.reciprocal)
    if data is None or len(data.x) < law.basis(data.x).shape[1]:
        return None
    solution = solve(data, law.basis, nonnegative=True)
    common = quality(
        data,
        law.basis,
        solution,
        nonnegative=True,
        parameters=len(solution.coefficients),
        resamples=resamples,
        reciprocal=law.reciprocal,
    )
    parameters = _parameters(law, solution.coefficients, common["draws"])
    return Fit(
        model=law.model,
        title=law.title,
        metric=metric,
        formula=law.formula({name: e.value for name, e in parameters.items()}),
        parameters=parameters,
        best_size=_best(law, solution.coefficients, common["draws"]),
        reciprocal=law.reciprocal,
        **common,
    )


def _parameters(law: Law, coefficients: Floats, draws: Floats) -> dict[str, Estimate]:
    values, drawn = law.read(coefficients[None, :]), law.read(draws)
    return {name: percentiles(float(value[0]), drawn[name]) for name, value in values.items()}


def _best(law: Law, coefficients: Floats, draws: Floats) -> Estimate | None:
    if law.best is None:
        return None
    return percentiles(float(law.best(coefficients[None, :])[0]), law.best(draws))
