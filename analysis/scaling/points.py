"""Next points: configurations that most reduce a prediction's uncertainty.

Every bootstrap draw of every plausible model is one possible truth: its value at each candidate size and the answer.
Measuring a candidate narrows the answer by their covariance (conditioning of a joint normal, as in Bayesian
experimental design, Chaloner and Verdinelli 1995); candidates are taken greedily, each given the ones before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from analysis.numbers import SHARE, amount
from analysis.scaling.choice import ModelChoice, fit_models
from analysis.scaling.models import Fit
from analysis.scaling.study import Study
from analysis.statistics import MINIMUM_REPETITIONS
from analysis.statistics.summary import Floats

_MOST: Final = 5
_WORTHWHILE: Final = 0.02
"""A suggestion must take away this share of the variance."""
_GUESSED_SPREAD: Final = 0.05
"""Assumed relative spread of one trial without repetitions."""
_LEAST_SPREAD: Final = 1e-6
"""Repetitions that are all equal were rounded: a spread of 0 would make every gain undefined."""

_MISSES: Final = "next to the best measured size, as the models miss by more than trials scatter"
_UNPREDICTED: Final = "next to the best measured size, as no model predicts"
_BEYOND: Final = "beyond the measured sizes, as the largest is the best and no model predicts"


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Repetitions of one configuration.

    ``reduction`` is the share of the variance left by the ones before that it takes away; None without a model.
    """

    parameters: dict[str, Any]
    repetitions: int
    reduction: float | None
    reason: str


@dataclass(frozen=True, slots=True)
class _PlausibleModels:
    sizes: Floats
    values: Floats
    """Relative values, (draws, sizes)."""
    target: Floats
    """(draws, 1): logarithm of the best size, the target."""
    noise: float
    """Relative variance of one trial."""
    model_error: float
    """Relative variance of a size about the model: no number of repetitions takes it away."""


def suggest_points(
    study: Study,
    *,
    budget_trials: int,
    sizes: Sequence[float],
    choice: ModelChoice | None = None,
) -> list[Suggestion]:
    """Return up to five configurations that narrow the best size, best first.

    Their repetitions add up to at most ``budget_trials``.

    ``sizes`` are those that the cluster can run: no other is suggested, not even one that was measured when it could. Where no
    model predicts, new sizes next to the best measured one are suggested, and repetitions of those that have too few. ``choice``
    is that of the study's time, if it exists.
    """
    choice = choice or fit_models(study)
    measured = [size for size, _ in study.sized(study.time_metric)]
    candidates = sorted(set(sizes))
    if not measured or not candidates or budget_trials < 1:
        return []
    if choice is not None and choice.chosen is None:
        return _without_model(study, measured, candidates, budget_trials)
    chosen = None if choice is None else choice.chosen
    plausible = (
        None if choice is None or chosen is None else _plausible_models(study, choice, chosen, np.array(candidates))
    )
    if chosen is None or plausible is None:
        return _repeat_first(study, candidates, budget_trials)
    suggestions: list[Suggestion] = []
    if chosen.model_error > plausible.noise:
        suggestions = _bracket(study, measured, candidates, budget_trials, _MOST, _MISSES)
        budget_trials -= sum(s.repetitions for s in suggestions)
    return _merged(suggestions + _greedy(study, plausible, budget_trials, _MOST - len(suggestions)))


def _without_model(
    study: Study, measured: Sequence[float], candidates: Sequence[float], budget: int
) -> list[Suggestion]:
    """Suggest missing repetitions, then sizes next to the best measured one or beyond.

    What was printed is not repeated.
    """
    repeated = [] if study.published else _repeat_first(study, candidates, budget)
    budget -= sum(s.repetitions for s in repeated)
    suggestions = repeated + _bracket(study, measured, candidates, budget, _MOST - len(repeated), _UNPREDICTED)
    budget -= sum(s.repetitions for s in suggestions[len(repeated) :])
    best = min(study.sized(study.time_metric), key=lambda sized: sized[1].median(study.time_metric) or 0.0)[0]
    if best == measured[-1] < candidates[-1] and budget >= MINIMUM_REPETITIONS and len(suggestions) < _MOST:
        beyond = _at(study, candidates[-1])
        suggestions.append(Suggestion(beyond, min(budget, max(MINIMUM_REPETITIONS, budget // _MOST)), None, _BEYOND))
    return suggestions


def _bracket(
    study: Study, measured: Sequence[float], candidates: Sequence[float], budget: int, most: int, reason: str
) -> list[Suggestion]:
    """Suggest unmeasured sizes half-way from the best measured one to its neighbours."""
    if most < 1:
        return []
    medians = [point.median(study.time_metric) or 0.0 for _, point in study.sized(study.time_metric)]
    best = medians.index(min(medians))
    suggestions: list[Suggestion] = []
    repetitions_each = max(MINIMUM_REPETITIONS, budget // most)
    for neighbour in (best - 1, best + 1):
        if not 0 <= neighbour < len(measured):
            continue
        ends = sorted((measured[best], measured[neighbour]))
        between = [c for c in candidates if ends[0] < c < ends[1]]
        if between and budget >= MINIMUM_REPETITIONS and len(suggestions) < most:
            size = min(between, key=lambda c: abs(c - sum(ends) / 2))
            repetitions = min(repetitions_each, budget)
            budget -= repetitions
            suggestions.append(Suggestion(_at(study, size), repetitions, None, reason))
    return suggestions


def _at(study: Study, size: float) -> dict[str, Any]:
    """Return the parameters of a configuration of that size."""
    sized = dict(study.sized(study.time_metric))
    template = sized.get(size) or next(iter(sized.values()))
    return dict(template.parameters) | {study.axis: int(size) if size == int(size) else size}


def _repeat_first(study: Study, sizes: Sequence[float], budget: int) -> list[Suggestion]:
    suggestions = []
    can_run = [point for size, point in study.sized(study.time_metric) if size in sizes]
    for point in can_run[:_MOST]:
        missing = min(MINIMUM_REPETITIONS - len(point.array(study.time_metric)), budget)
        if missing > 0:
            budget -= missing
            suggestions.append(Suggestion(dict(point.parameters), missing, None, "too few repetitions to fit a model"))
    return suggestions


def _plausible_models(study: Study, choice: ModelChoice, chosen: Fit, sizes: Floats) -> _PlausibleModels | None:
    """Return draws of the plausible models in proportion to their weights, or None."""
    fits = [(f, w) for f, w in _weights(choice) if len(f.draws)]
    if not fits:
        return None
    values, targets = [], []
    for fit, weight in fits:
        count = max(round(weight * len(fit.draws)), 2)
        drawn = fit.drawn(sizes)[:count]
        values.append(drawn / np.abs(chosen.at(sizes)))
        targets.append(np.log(sizes[drawn.argmin(axis=1)])[:, None])
    return _PlausibleModels(sizes, np.concatenate(values), np.concatenate(targets), _spread(study), chosen.model_error)


def _weights(choice: ModelChoice) -> list[tuple[Fit, float]]:
    """Return Akaike weights, else inverse squared leave-one-out errors.

    Burnham and Anderson 2002, section 2.9.
    """
    scored = [(f, f.aicc) for f in choice.fits if f.aicc is not None]
    if scored and choice.criterion != "leave-one-out error":
        best = min(a for _, a in scored)
        raw = [(f, float(np.exp(-(a - best) / 2))) for f, a in scored]
    else:
        raw = [(f, 1 / max(f.cv_error, 1e-6) ** 2) for f in choice.fits if f.cv_error is not None]
    total = sum(w for _, w in raw)
    return [(f, w / total) for f, w in raw if w / total > 0.01]


def _spread(study: Study) -> float:
    spreads = [
        float(np.var(values, ddof=1) / values.mean() ** 2)
        for _, point in study.sized(study.time_metric)
        if len(values := point.array(study.time_metric)) > 1
    ]
    return max(float(np.mean(spreads)), _LEAST_SPREAD**2) if spreads else _GUESSED_SPREAD**2


def _greedy(study: Study, plausible: _PlausibleModels, budget: int, most: int) -> list[Suggestion]:
    values = plausible.values - plausible.values.mean(axis=0)
    target = plausible.target - plausible.target.mean(axis=0)
    joint = np.hstack([values, target])
    covariance = joint.T @ joint / max(len(joint) - 1, 1)
    m = len(plausible.sizes)
    counts = _repetitions(study, plausible.sizes)
    suggestions: list[Suggestion] = []
    repetitions_each = max(MINIMUM_REPETITIONS, budget // most)
    while budget >= 1 and len(suggestions) < most:
        repetitions = min(repetitions_each, budget)
        noise = _worth(plausible, counts, repetitions)
        variance = float(np.trace(covariance[m:, m:]))
        gains = (covariance[m:, :m] ** 2).sum(axis=0) / (np.diag(covariance)[:m] + noise)
        best = int(gains.argmax())
        if variance <= 0 or gains[best] / variance < _WORTHWHILE:
            break
        reduction = float(gains[best] / variance)
        suggestions.append(_suggestion(study, float(plausible.sizes[best]), repetitions, reduction))
        column = covariance[:, best]
        covariance = covariance - np.outer(column, column) / (column[best] + noise[best])
        counts[best] += repetitions
        budget -= repetitions
    return suggestions


def _repetitions(study: Study, sizes: Floats) -> Floats:
    had = {size: len(point.array(study.time_metric)) for size, point in study.sized(study.time_metric)}
    return np.array([had.get(float(size), 0) for size in sizes], dtype=np.float64)


def _worth(plausible: _PlausibleModels, counts: Floats, more: int) -> Floats:
    """Return the variance of one observation worth ``more`` repetitions.

    Repetitions average the scatter away, never the size's own distance from the model, so a measured size soon adds nothing new.
    """
    after = 1 / (plausible.model_error + plausible.noise / (counts + more))
    with np.errstate(divide="ignore"):
        before = np.where(counts > 0, 1 / (plausible.model_error + plausible.noise / counts), 0.0)
    worth: Floats = 1 / np.maximum(after - before, 1e-12)
    return worth


def _suggestion(study: Study, size: float, repetitions: int, reduction: float) -> Suggestion:
    sized = dict(study.sized(study.time_metric))
    kind = "more repetitions" if size in sized else "between the measured sizes"
    if size not in sized and not min(sized) <= size <= max(sized):
        kind = "beyond the measured sizes"
    share = amount(reduction, SHARE, 2)
    reason = f"{kind}; removes {share} of the uncertainty of the best number of {study.axis}"
    return Suggestion(_at(study, size), repetitions, reduction, reason)


def _merged(suggestions: list[Suggestion]) -> list[Suggestion]:
    merged: dict[str, Suggestion] = {}
    for s in suggestions:
        key = repr(sorted(s.parameters.items(), key=lambda item: item[0]))
        old = merged.get(key)
        merged[key] = (
            s
            if old is None
            else Suggestion(
                s.parameters,
                old.repetitions + s.repetitions,
                1 - (1 - (old.reduction or 0.0)) * (1 - (s.reduction or 0.0)),
                old.reason,
            )
        )
    return list(merged.values())
