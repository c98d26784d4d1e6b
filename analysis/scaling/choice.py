"""Which model to show: all that apply are fitted, one is chosen, and the choice is explained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from analysis.numbers import SHARE, amount, plural, significant
from analysis.scaling.fitting import RESAMPLES
from analysis.scaling.laws import AMDAHL, CONSTANT, GUSTAFSON, USL, fit_law
from analysis.scaling.models import Fit
from analysis.scaling.pmnf import pmnf
from analysis.scaling.study import CPU_METRICS, Point, Study
from analysis.statistics import differs_anywhere, ratio_interval

_VARIES: Final = 0.01
"""Below this p-value of "the same everywhere" the constant is out of the choice."""
_PRINTED: Final = 1.05
"""Ratio of single printed values that counts as a difference."""
_WORTH_A_PARAMETER: Final = 0.8
"""Without repetitions, a richer model must cut the leave-one-out error to this share of the simpler one's."""


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """All fits of one metric, simplest first, and the chosen one."""

    metric: str
    fits: tuple[Fit, ...]
    chosen: Fit
    criterion: str
    """AICc or leave-one-out error."""
    reason: str
    """One or two sentences for a reader: why this one, and where it misses."""

    @property
    def best_size(self) -> float | None:
        """Predicted best size of the chosen model; infinite where it never stops falling; None for a constant."""
        return None if self.chosen.best_size is None else self.chosen.best_size.value

    @property
    def extrapolated(self) -> bool:
        """The predicted best lies outside of the measured sizes."""
        low, high = self.chosen.measured
        return self.best_size is not None and not low <= self.best_size <= high

    def fit(self, model: str) -> Fit | None:
        return next((f for f in self.fits if f.model == model), None)


def fit_models(study: Study, metric: str | None = None, *, resamples: int = RESAMPLES) -> ModelChoice | None:
    """Fit every model that applies to the metric (None: the study's time) and choose; None where none can be fitted.

    Times get the constant, Amdahl (Gustafson in weak scaling), USL and PMNF; every other metric, packets, bytes,
    retransmissions or round trips, the constant and PMNF. Repeated trials are judged by AICc; single values, and trials that
    scatter less than the best model misses (then they are not independent evidence for it), by leave-one-out error.
    """
    name = metric or study.time_metric
    laws = [CONSTANT]
    if name == study.time_metric or name in CPU_METRICS:
        laws += [GUSTAFSON] if study.kind == "weak" else [AMDAHL, USL]
    candidates = [fit_law(law, study, name, resamples=resamples) for law in laws]
    normal_form = pmnf(study, name, resamples=resamples)
    if normal_form is not None and len(normal_form.coefficients) > 1:
        candidates.append(normal_form)
    fits = tuple(f for f in candidates if f is not None)
    if not fits:
        return None
    eligible, why = _eligible(study, name, fits)
    repeated = fits[0].values > len(study.sized(name))
    chosen, criterion, reason = _by_aicc(eligible) if repeated else _by_cross_validation(eligible)
    if criterion == "AICc" and chosen.misfit.significant:
        chosen, criterion, reason = _by_cross_validation(eligible)
    return ModelChoice(name, fits, chosen, criterion, f"{why}{reason}{_misfit(chosen, study.axis)}")


def _eligible(study: Study, metric: str, fits: tuple[Fit, ...]) -> tuple[tuple[Fit, ...], str]:
    """Leave out what the data contradict before any criterion: a constant where they vary, a slope where they turn."""
    if metric == study.time_metric and _turns(study):
        low, high = fits[0].measured
        turning = tuple(f for f in fits if f.best_size is not None and low < f.best_size.value < high)
        if turning:
            return turning, "The time falls and then rises again, so only models with an optimum are compared. "
    groups = [point.values[metric] for _, point in study.sized(metric)]
    varies = len(fits) > 1 and differs_anywhere(groups) < _VARIES
    return (fits[1:] if varies else fits), ""


def _turns(study: Study) -> bool:
    """Whether a size between the smallest and the largest is measurably faster than both."""
    sized = study.sized(study.time_metric)
    best = min(range(len(sized)), key=lambda i: sized[i][1].median(study.time_metric) or 0.0)
    if best in (0, len(sized) - 1):
        return False
    return all(is_slower(study, sized[end][1], sized[best][1]) for end in (0, -1))


def is_slower(study: Study, point: Point, other: Point) -> bool:
    """Whether ``point`` takes measurably longer: the ratio's interval excludes 1, or print says so by more than 5 %."""
    a, b = point.array(study.time_metric), other.array(study.time_metric)
    interval = ratio_interval(a, b)
    if interval is not None:
        return interval.low is not None and interval.low > 1
    return study.published and float(np.median(a)) > _PRINTED * float(np.median(b))


def _by_aicc(fits: tuple[Fit, ...]) -> tuple[Fit, str, str]:
    ranked = sorted((f for f in fits if f.aicc is not None), key=lambda f: f.aicc or 0.0)
    if not ranked:
        return _by_cross_validation(fits)
    best = ranked[0]
    if len(ranked) == 1:
        return best, "AICc", f"{best.title} is the only one."
    behind = (ranked[1].aicc or 0.0) - (best.aicc or 0.0)
    weight = "clearly" if behind >= 4 else "barely"
    return (
        best,
        "AICc",
        f"{best.title} has the lowest AICc of {len(fits)} models, {weight}: {ranked[1].title} is {significant(behind, 2)} behind.",
    )


def _by_cross_validation(fits: tuple[Fit, ...]) -> tuple[Fit, str, str]:
    best = fits[0]
    for fit in fits[1:]:
        if fit.cv_error is not None and (best.cv_error is None or fit.cv_error < _WORTH_A_PARAMETER * best.cv_error):
            best = fit
    if len(fits) == 1:
        return best, "leave-one-out error", f"{best.title} is the only one."
    if best.cv_error is None:
        return best, "leave-one-out error", f"{best.title}: too few sizes to compare models."
    return (
        best,
        "leave-one-out error",
        f"{best.title} is the simplest that predicts a left-out size about as well as any: to {amount(best.cv_error, SHARE, 2)}.",
    )


def _misfit(fit: Fit, axis: str) -> str:
    if not fit.misfit.significant:
        return ""
    size = plural(fit.misfit.size, axis.removesuffix("s"))
    return (
        f" It misses by {amount(abs(fit.misfit.relative), SHARE, 2)} at {size}, more than the repetitions scatter:"
        " treat its predictions as a guide."
    )
