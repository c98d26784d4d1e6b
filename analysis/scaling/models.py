"""Fitted models: formula, parameters with intervals, predictions and misfit."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np

from analysis.scaling.fitting import (
    Basis,
    Sample,
    Solution,
    aicc,
    bootstrap,
    cross_validation_error,
    lack_of_fit,
    misfit_variance,
)
from analysis.scaling.speedup import Estimate
from analysis.statistics import Interval
from analysis.statistics.summary import Floats

_METHOD = "bootstrap of residuals, 95 % percentiles"


@dataclass(frozen=True, slots=True)
class Prediction:
    """The model at one size, with the interval of its value, not of a trial."""

    size: float
    value: float
    interval: Interval | None
    extrapolated: bool
    """Outside of the measured sizes."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """The largest deviation of the model from the mean of the repetitions."""

    size: float
    residual: float
    """Measured less fitted, in the metric's unit."""
    relative: float
    p_value: float | None
    """P-value of "no worse than the scatter of the repetitions"; None without repetitions."""

    @property
    def significant(self) -> bool:
        return self.p_value is not None and self.p_value < 0.05


@dataclass(frozen=True, slots=True)
class FittedModel:
    """One model of one metric over the study's axis, as plain values."""

    model: str
    """constant, amdahl, gustafson, usl or pmnf."""
    title: str
    metric: str
    formula: str
    parameters: dict[str, Estimate]
    best_size: Estimate | None
    """Size of the smallest value, for a time; interval end None: not bounded by the data. None: no optimum in the model."""
    aicc: float | None
    cv_error: float | None
    """Leave-one-size-out error, 0.05 is 5 %."""
    misfit: Misfit
    measured: tuple[float, float]
    values: int
    """Repetitions that were fitted."""

    @classmethod
    def of(cls, fit: FittedModel) -> FittedModel:
        """Return a fit without the arrays behind it."""
        return FittedModel(**{field.name: getattr(fit, field.name) for field in fields(FittedModel)})

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        names = ("model", "title", "metric", "formula", "aicc", "cv_error", "values")
        return {name: getattr(self, name) for name in names} | {
            "measured": list(self.measured),
            "parameters": {name: estimate_dict(e) for name, e in self.parameters.items()},
            "best_size": estimate_dict(self.best_size),
            "misfit": asdict(self.misfit),
        }


@dataclass(frozen=True, slots=True)
class Fit(FittedModel):
    """A fitted model that predicts: its basis, coefficients and their bootstrap."""

    basis: Basis = field(repr=False)
    coefficients: Floats = field(repr=False)
    draws: Floats = field(repr=False)
    """Bootstrap coefficients, (resamples, k); (0, k) when the data leave no error to estimate."""
    model_error: float = 0.0
    """Relative variance of a size's true mean about the model, beyond the scatter of the repetitions."""
    reciprocal: bool = False
    """The model is linear in 1 / value."""

    def at(self, sizes: Floats | list[float]) -> Floats:
        """Return model values at the sizes, shape (s,), in the metric's unit."""
        y: Floats = self.basis(np.asarray(sizes, dtype=np.float64)) @ self.coefficients
        return 1 / y if self.reciprocal else y

    def drawn(self, sizes: Floats | list[float]) -> Floats:
        """Return bootstrap values, shape (resamples, s)."""
        y: Floats = self.draws @ self.basis(np.asarray(sizes, dtype=np.float64)).T
        return 1 / y if self.reciprocal else y

    def predict(self, sizes: Floats | list[float]) -> list[Prediction]:
        """Return predictions with 95 % intervals of positive draws."""
        x = np.asarray(sizes, dtype=np.float64)
        middle, drawn = self.at(x), self.drawn(x)
        first, last = self.measured
        return [
            Prediction(float(size), float(value), interval, not first <= size <= last)
            for size, value, interval in zip(x, middle, _positive_intervals(drawn), strict=True)
        ]


def _positive_intervals(drawn: Floats) -> list[Interval | None]:
    """Return the 95 % percentiles of the positive draws of each column, or None."""
    if drawn.size and (drawn > 0).all():  # nearly always: all columns at once, in a twentieth of the time
        ends = np.quantile(drawn, [0.025, 0.975], axis=0).T
    else:
        positive = [column[column > 0] for column in drawn.T]
        ends = np.array([np.quantile(c, [0.025, 0.975]) if len(c) else (np.nan, np.nan) for c in positive])
    return [None if np.isnan(low) else Interval(float(low), float(high), 0.95, _METHOD) for low, high in ends]


def estimate_dict(estimate: Estimate | None) -> dict[str, Any] | None:
    """Return an estimate as plain data: value, low, high, method."""
    if estimate is None:
        return None
    interval = estimate.interval
    return {
        "value": estimate.value if np.isfinite(estimate.value) else None,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "method": interval.method if interval else None,
    }


def percentiles(value: float, draws: Floats) -> Estimate:
    """Return the estimate with 95 % percentiles; infinite ends become None."""
    draws = draws[~np.isnan(draws)]  # a wild draw may leave no time at all, and then no share of it
    if not len(draws):
        return Estimate(value)
    low, high = np.quantile(draws, [0.025, 0.975], method="nearest")
    ends = [float(e) if np.isfinite(e) else None for e in (low, high)]
    return Estimate(value, Interval(ends[0], ends[1], 0.95, _METHOD))


def quality(
    data: Sample,
    basis: Basis,
    solution: Solution,
    *,
    nonnegative: bool,
    parameters: int,
    resamples: int,
    reciprocal: bool = False,
) -> dict[str, Any]:
    """Return the fields of a Fit that all models share."""
    measured, fitted = (1 / data.y, 1 / solution.fitted) if reciprocal else (data.y, solution.fitted)
    worst = int(np.abs((measured - fitted) / measured).argmax())
    return {
        "aicc": aicc(data, solution, parameters),
        "cv_error": cross_validation_error(data, basis, nonnegative=nonnegative),
        "misfit": Misfit(
            float(data.x[worst]),
            float(measured[worst] - fitted[worst]),
            float((measured[worst] - fitted[worst]) / measured[worst]),
            lack_of_fit(data, solution),
        ),
        "measured": (float(data.x.min()), float(data.x.max())),
        "values": int(data.counts.sum()),
        "model_error": misfit_variance(data, solution) or 0.0,
        "basis": basis,
        "coefficients": solution.coefficients,
        "draws": bootstrap(data, basis, solution, nonnegative=nonnegative, resamples=resamples),
    }
