"""Diagnoses of studies: the report, and each slice's sizes, times and models.

A diagnosis holds plain values without their arrays, so that it can be cached.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np

from analysis.conclusions.context import ExperimentQuestion
from analysis.conclusions.observations.reading import ChoiceOf
from analysis.conclusions.rules.report import Report, find
from analysis.scaling import (
    Fit,
    ModelChoice,
    ScalingRow,
    Study,
    Suggestion,
    TimeRow,
    WireRow,
    fit_models,
    scaling_table,
    suggest_points,
    time_breakdown,
    wire_part,
)
from analysis.scaling.models import FittedModel

MODELLED: Final = ("packets", "throughput_Bps", "interarrival_mean_s", "retransmitted_segments", "rtt_median_s")
"""Network metrics whose growth with the hosts is modelled."""
CPU: Final = "cpu_mean_rank_s"
BUDGET_TRIALS: Final = 25
"""Budget of the suggested next points."""
BEYOND: Final = 1.5
"""Curves are drawn, and sizes suggested, no farther than this beyond the largest measured size."""
_MOST_SLICES: Final = 6
_CURVE_POINTS: Final = 61


@dataclass(frozen=True, slots=True)
class Curve:
    """A model over the sizes ``x``.

    Value and 95 % band are in the metric's unit; None without a band.
    """

    model: str
    title: str
    x: list[float]
    y: list[float]
    low: list[float | None]
    high: list[float | None]
    measured: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Model:
    """The models of one metric, the one that predicts, and its curves."""

    metric: str
    chosen: FittedModel | None
    criterion: str
    reason: str
    extrapolated: bool
    fits: tuple[FittedModel, ...]
    curves: tuple[Curve, ...]

    @classmethod
    def of(cls, choice: ModelChoice) -> Model:
        chosen, last = choice.chosen, choice.fits[0].measured[1]
        drawn = [] if chosen is None else [fit for fit in choice.fits if fit.model != "constant" or fit is chosen]
        # Only a time has a best size to look for, and only beyond the measured range does a curve have to leave it.
        best = choice.best_size if choice.metric == "elapsed_s" and choice.best_size is not None else last
        end = min(1.1 * best, BEYOND * last) if last < best < np.inf else last
        return cls(
            metric=choice.metric,
            chosen=None if chosen is None else FittedModel.of(chosen),
            criterion=choice.criterion,
            reason=choice.reason,
            extrapolated=choice.extrapolated,
            fits=tuple(FittedModel.of(fit) for fit in choice.fits),
            curves=tuple(_curve(fit, end) for fit in drawn),
        )

    def fit(self, model: str) -> FittedModel | None:
        return next((fit for fit in self.fits if fit.model == model), None)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        chosen = None if self.chosen is None else self.chosen.model
        plain = asdict(replace(self, chosen=None, fits=()))
        return plain | {"chosen": chosen, "fits": [fit.to_dict() for fit in self.fits]}


@dataclass(frozen=True, slots=True)
class Slice:
    """One slice of the study: sizes, divisions of time, models and next points."""

    where: Mapping[str, Any]
    rows: tuple[ScalingRow, ...]
    time: tuple[TimeRow, ...]
    wire: tuple[WireRow, ...]
    models: Mapping[str, Model]
    next: tuple[Suggestion, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(replace(self, models={})) | {
            "models": {name: model.to_dict() for name, model in self.models.items()}
        }


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The report of a study with its evidence."""

    report: Report
    trials: int
    """Number of counted trials, of any metric."""
    kind: str
    """Strong or weak scaling."""
    axis: str
    slices: tuple[Slice, ...]
    slices_left_out: int

    @property
    def suggested(self) -> list[tuple[Mapping[str, Any], int]]:
        """Return the suggested points as (parameters, repetitions)."""
        return [(point.parameters, point.repetitions) for part in self.slices for point in part.next]

    @property
    def unmeasured(self) -> list[tuple[Mapping[str, Any], int]]:
        """Return those of the suggested points whose size has no trial."""
        return [
            (point.parameters, point.repetitions)
            for part in self.slices
            for point in part.next
            if point.parameters[self.axis] not in {row.size for row in part.rows}
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(replace(self, slices=())) | {"slices": [part.to_dict() for part in self.slices]}


def diagnose(
    study: Study,
    *,
    largest_size: Callable[[Study], float],
    question: ExperimentQuestion | None = None,
    progress: Callable[[float], None] = lambda share: None,
) -> Diagnosis:
    """Diagnose the study of an experiment. Takes up to seconds: models, bootstrap.

    Parameters
    ----------
    study
        The points with their trials.
    largest_size
        Largest size of a slice that the cluster can run; none above it is suggested.
    question
        The experiment's question.
    progress
        Called with the share of the slices that are done.

    Returns
    -------
    Diagnosis
        Report and slices, without arrays.
    """
    slices = study.slices()
    budget = BUDGET_TRIALS // min(len(slices), _MOST_SLICES)
    choices: dict[str, ModelChoice | None] = {}

    def choice_of(part: Study) -> ModelChoice | None:
        """Return the models of a slice's time, fitted once for all their uses."""
        where = repr(dict(part.where))
        if where not in choices:
            choices[where] = fit_models(part)
        return choices[where]

    return Diagnosis(
        report=find(study, choice_of, question, progress),
        trials=sum(max(map(len, p.values.values()), default=0) for p in study.points),
        kind=study.kind,
        axis=study.axis,
        slices=tuple(_slice(part, budget, largest_size(part), choice_of) for part in slices[:_MOST_SLICES]),
        slices_left_out=max(0, len(slices) - _MOST_SLICES),
    )


def _slice(study: Study, budget: int, largest_size: float, choice_of: ChoiceOf) -> Slice:
    rows = scaling_table(study)
    models = {}
    if len({row.size for row in rows}) > 1:
        names = [n for n in (study.time_metric, CPU, *MODELLED) if len(study.sized(n)) > 2]
        choices = {n: choice_of(study) if n == study.time_metric else fit_models(study, n) for n in names}
        models = {name: Model.of(choice) for name, choice in choices.items() if choice is not None}
    sizes = _sizes_to_suggest(study, largest_size)
    suggestions = (
        [] if study.published else suggest_points(study, budget_trials=budget, sizes=sizes, choice=choice_of(study))
    )
    return Slice(
        where=dict(study.where),
        rows=tuple(rows),
        time=tuple(time_breakdown(study)),
        wire=tuple(wire_part(study)),
        models=models,
        next=tuple(suggestions),
    )


def _sizes_to_suggest(study: Study, largest_size: float) -> Sequence[float]:
    """Return the whole sizes that the cluster can run, from the smallest measured one."""
    measured = [size for size, _ in study.sized(study.time_metric)]
    if not measured:
        return []
    last = min(int(BEYOND * max(measured)), int(largest_size))
    return [float(size) for size in range(int(min(measured)), last + 1)]


def _curve(fit: Fit, end: float) -> Curve:
    first, last = fit.measured
    sizes = np.unique([*np.linspace(first, end, _CURVE_POINTS), last])
    predictions = fit.predict(sizes[fit.at(sizes) > 0].tolist())  # all metrics that are modelled are positive
    return Curve(
        model=fit.model,
        title=fit.title,
        x=[p.size for p in predictions],
        y=[p.value for p in predictions],
        low=[p.interval.low if p.interval else None for p in predictions],
        high=[p.interval.high if p.interval else None for p in predictions],
        measured=fit.measured,
    )
