"""Model selection: all that apply are fitted, one that predicts is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from analysis.numbers import SHARE, amount, plural, significant
from analysis.scaling.fitting import RESAMPLES, values_by_size
from analysis.scaling.laws import AMDAHL, CONSTANT, GUSTAFSON, USL, fit_law
from analysis.scaling.models import Fit
from analysis.scaling.pmnf import pmnf
from analysis.scaling.study import CPU_METRICS, Point, Study
from analysis.statistics import equal_means, ratio_interval
from analysis.statistics.summary import Floats

_VARIES: Final = 0.05
"""Below this p-value of "the same everywhere" the constant is out of the choice."""
_PRINTED: Final = 1.05
"""Ratio of single values that counts as a difference."""
_FLAT: Final = 0.1
"""Largest error of a constant; a larger one means too few repetitions."""
_WORTH_A_PARAMETER: Final = 0.8
"""A model, with a turn or without, must cut the leave-one-out error to this share of the constant's; without repetitions also of
any simpler one's."""
_TO_TEST: Final = 2
"""Sizes that a model needs beyond its parameters: one to be left out, one that its remaining fit can miss."""
_ONLY: Final = "{} is the only one that predicts a left-out size: to {}."
_NONE: Final = "No model predicts a left-out size: "


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """All fits of one metric, simplest first, and the one that predicts, or None."""

    metric: str
    fits: tuple[Fit, ...]
    chosen: Fit | None
    criterion: str
    """AICc, leave-one-out error, or equal means for a constant; empty without a choice."""
    reason: str
    """One or two sentences: the reason of the choice and its misfit, or why none predicts."""

    @property
    def best_size(self) -> float | None:
        """Return the predicted best size; infinite if it never stops falling, or None."""
        return None if self.chosen is None or self.chosen.best_size is None else self.chosen.best_size.value

    @property
    def extrapolated(self) -> bool:
        """Return whether the predicted best is outside of the measured sizes."""
        low, high = self.fits[0].measured
        return self.best_size is not None and not low <= self.best_size <= high

    def fit(self, model: str) -> Fit | None:
        return next((f for f in self.fits if f.model == model), None)


def fit_models(study: Study, metric: str | None = None, *, resamples: int = RESAMPLES) -> ModelChoice | None:
    """Fit every model of a metric and choose one that predicts.

    Times get the constant, Amdahl (Gustafson in weak scaling), USL and PMNF; every other metric, packets, bytes,
    retransmissions or round trips, the constant and PMNF. Chosen is only what predicts a left-out size. Repeated trials are
    judged by AICc; single values, and trials that scatter less than the best model misses (then they are not independent
    evidence for it), by leave-one-out error.

    Parameters
    ----------
    study
        The sizes with their trials.
    metric
        Catalogue id; None: the study's time.
    resamples
        Bootstrap replicates for intervals.

    Returns
    -------
    ModelChoice or None
        None if no model can be fitted.
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
    trial = _Trial(fits, list(values_by_size(study, name).values()), name == study.time_metric and _turns(study))
    eligible = trial.predicting()
    if not eligible:
        return ModelChoice(name, fits, None, "", f"{_NONE}{trial.why_none(study.axis)}.")
    if not trial.varies:
        flat = eligible[0]
        reason = (
            f"No measurable change with the {study.axis}; the mean of all predicts a left-out size to {_error(flat)}."
        )
        return ModelChoice(name, fits, flat, "equal means", reason)
    chosen, criterion, reason = _by_aicc(eligible) if trial.repeated else _by_cross_validation(eligible)
    if criterion == "AICc" and chosen.misfit.significant:
        chosen, criterion, reason = _by_cross_validation(eligible)
    turns = "The time falls and then rises again, so only models with an optimum are compared. " if trial.turns else ""
    return ModelChoice(name, fits, chosen, criterion, f"{turns}{reason}{_misfit(chosen, study.axis)}")


@dataclass(frozen=True, slots=True)
class _Trial:
    """Models against the data, which they must vary, turn and predict like."""

    fits: tuple[Fit, ...]
    groups: Sequence[Floats] = field(repr=False)
    """The values of every size."""
    turns: bool

    @property
    def repeated(self) -> bool:
        return sum(map(len, self.groups)) > len(self.groups)

    @property
    def change(self) -> float:
        """Return the relative range of the means, comparable with the leave-one-out error."""
        means = [float(g.mean()) for g in self.groups]
        return 2 * (max(means) - min(means)) / (max(means) + min(means))

    def predicting(self) -> tuple[Fit, ...]:
        return tuple(fit for fit in self._tested() if self._predicts(fit))

    def _tested(self) -> list[Fit]:
        return [f for f in self.fits if len(self.groups) >= len(f.coefficients) + _TO_TEST and f.cv_error is not None]

    def _predicts(self, fit: Fit) -> bool:
        error = float("inf") if fit.cv_error is None else fit.cv_error
        if fit.model == "constant":
            return not self.varies and error < _FLAT
        better = error < min(self.change, _WORTH_A_PARAMETER * (self.fits[0].cv_error or 0.0))
        return better and (_has_turn(fit) if self.turns else self.varies)

    @property
    def varies(self) -> bool:
        """Return whether sizes differ by more than scatter, or 5 % without repetitions."""
        if self.turns:
            return True
        same = equal_means(self.groups)
        if same is not None:
            return same < _VARIES
        means = [float(g.mean()) for g in self.groups]
        return max(means) > _PRINTED * min(means)

    def why_none(self, axis: str) -> str:
        """Return the reason why no model predicts, as the rest of a sentence."""
        sizes, growing = len(self.groups), [f for f in self._tested() if f.model != "constant"]
        too_few = f"{sizes} numbers of {axis} are too few to trust the error of a model that changes with them"
        if not growing and (self.varies or not self._tested()):
            return too_few
        if self.turns and not any(map(_has_turn, growing)):
            return f"the time falls and then rises again, and {plural(sizes, 'size')} are too few to test such a model"
        closest = [f for f in growing if _has_turn(f)] if self.turns else growing if self.varies else self._tested()[:1]
        best = min(closest, key=lambda f: f.cv_error or 0.0)
        if not self.varies:
            few = "" if growing else f". {too_few}"
            return (
                f"a test of all sizes together shows no measurable change with the {axis}, "
                f"and the mean misses a left-out one by {_error(best)}{few}"
            )
        mean = f", their mean by {_error(self.fits[0])}" if best is not self.fits[0] else ""
        change = amount(self.change, SHARE, 2)
        return f"{best.title}, the closest, misses a left-out one by {_error(best)}{mean}, while all change by {change}"


def _has_turn(fit: Fit) -> bool:
    low, high = fit.measured
    return fit.best_size is not None and low < fit.best_size.value < high


def _turns(study: Study) -> bool:
    """Return whether a middle size is measurably faster than both ends."""
    sized = study.sized(study.time_metric)
    best = min(range(len(sized)), key=lambda i: sized[i][1].median(study.time_metric) or 0.0)
    if best in (0, len(sized) - 1):
        return False
    return all(is_slower(study, sized[end][1], sized[best][1]) for end in (0, -1))


def is_slower(study: Study, point: Point, other: Point) -> bool:
    """Return whether ``point`` takes measurably longer, or 5 % longer in print."""
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
        return best, "AICc", _ONLY.format(best.title, _error(best))
    behind = (ranked[1].aicc or 0.0) - (best.aicc or 0.0)
    weight = "clearly" if behind >= 4 else "barely"
    return (
        best,
        "AICc",
        f"{best.title} has the lowest AICc of {len(fits)} models that predict, {weight}: "
        f"{ranked[1].title} is {significant(behind, 2)} behind.",
    )


def _by_cross_validation(fits: tuple[Fit, ...]) -> tuple[Fit, str, str]:
    best = fits[0]
    for fit in fits[1:]:
        if fit.cv_error is not None and (best.cv_error is None or fit.cv_error < _WORTH_A_PARAMETER * best.cv_error):
            best = fit
    if len(fits) == 1:
        return best, "leave-one-out error", _ONLY.format(best.title, _error(best))
    return (
        best,
        "leave-one-out error",
        f"{best.title} is the simplest that predicts a left-out size about as well as any: to {_error(best)}.",
    )


def _error(fit: Fit) -> str:
    return amount(fit.cv_error, SHARE, 2)


def _misfit(fit: Fit, axis: str) -> str:
    if not fit.misfit.significant:
        return ""
    size = plural(fit.misfit.size, axis.removesuffix("s"))
    return (
        f" It misses by {amount(abs(fit.misfit.relative), SHARE, 2)} at {size}, more than the repetitions scatter:"
        " treat its predictions as a guide."
    )
