"""Stored predictions and the trials that check them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from django.db.models import QuerySet
from django.db.models.fields.json import KT

from analysis.numbers import SECONDS
from experiments.access import visible_experiments
from experiments.errors import FieldError, InvalidSpec
from experiments.metrics import find
from experiments.models import UNFINISHED, Experiment, Kind, Measurement, Prediction, State, Trial
from experiments.models.states import disturbed
from experiments.revision import MorePoints, plan_configuration

TRIALS: Final = 2
"""Trials that check a prediction."""
MOST_SCORED: Final = 500
"""Newest predictions that the score covers."""


@dataclass(frozen=True, slots=True)
class PredictionCheck:
    """The trials that check a prediction; none was known when it was made."""

    prediction: Prediction
    trials: tuple[int, ...] = ()
    """Keys of all checking trials."""
    waiting: int = 0
    """Number of unfinished trials."""
    seconds: tuple[float, ...] = ()
    """Times of undisturbed trials on the requested link."""
    other_link: int = 0
    """Trials whose certificate shows another link: they check nothing."""
    disturbed: int = 0
    """Trials on the requested link that other load slowed: they check nothing."""

    @property
    def measured_s(self) -> float | None:
        return median(self.seconds) if self.seconds and not self.waiting else None

    @property
    def error(self) -> float | None:
        """Return predicted / measured - 1."""
        return None if self.measured_s is None else self.prediction.value_s / self.measured_s - 1

    @property
    def inside(self) -> bool | None:
        """Return whether the measured median is in the interval."""
        return None if self.measured_s is None else self.prediction.holds(self.measured_s)


@dataclass(frozen=True, slots=True)
class PredictionScore:
    """Summary of checked predictions."""

    checked: int
    inside: int
    error: float | None
    """Median absolute error; None if no prediction was checked."""


def visible_predictions(user: Any) -> QuerySet[Prediction]:
    """Return the predictions of visible experiments, newest first."""
    return Prediction.objects.filter(experiment__in=visible_experiments(user)).select_related("experiment", "author")


def checks_of(predictions: Iterable[Prediction]) -> dict[int, PredictionCheck]:
    """Return the check of each prediction by key. Two queries."""
    rows = list(predictions)
    if not rows:
        return {}
    trials = _trials(
        {prediction.experiment_id for prediction in rows}, {prediction.configuration_hash for prediction in rows} - {""}
    )
    finished = [key for listed in trials.values() for key, state, *_ in listed if state == State.FINISHED]
    values = Measurement.objects.filter(trial__in=finished, scope=Measurement.Scope.ALL)
    times = {
        (trial, metric): seconds_of(value, metric)
        for trial, metric, value in values.filter(metric__in={prediction.metric for prediction in rows}).values_list(
            "trial_id", "metric", "value"
        )
    }
    return {
        prediction.pk: _check(
            prediction, trials[prediction.experiment_id, prediction.cluster_id, prediction.configuration_hash], times
        )
        for prediction in rows
    }


def seconds_of(value: float, metric: str) -> float:
    """Return a value of a metric of time in seconds."""
    return value * SECONDS.get(find(metric).unit, 1.0)


_Row = tuple[int, str, bool, str | None]
"""(key of a trial, its state, whether other load slowed it, the certificate's ``kept`` as JSON text)."""


def _trials(experiments: set[int], hashes: set[str]) -> dict[tuple[int, int | None, str], list[_Row]]:
    of_links = Trial.objects.filter(
        experiment__in=experiments, configuration__hash__in=hashes, kind=Kind.MEASURED, superseded=False
    )
    rows = of_links.annotate(is_disturbed=disturbed()).order_by("pk")
    trials: dict[tuple[int, int | None, str], list[_Row]] = defaultdict(list)
    names = ("experiment_id", "cluster_id", "configuration__hash", "pk", "state", "is_disturbed")
    for experiment, cluster, key, *row in rows.values_list(*names, KT("certificate__kept")):
        trials[experiment, cluster, key].append((row[0], row[1], row[2], row[3]))
    return trials


def _check(prediction: Prediction, rows: Sequence[_Row], times: dict[tuple[int, str], float]) -> PredictionCheck:
    earlier = {*prediction.evidence, *prediction.ended}
    later = [row for row in rows if row[0] not in earlier]
    ended = [row for row in later if row[1] == State.FINISHED]
    on_link = [(key, is_disturbed) for key, _, is_disturbed, link_kept in ended if link_kept != "false"]
    checking = [key for key, is_disturbed in on_link if not is_disturbed]
    return PredictionCheck(
        prediction,
        trials=tuple(key for key, *_ in later),
        waiting=sum(state in UNFINISHED for _, state, *_ in later),
        seconds=tuple(times[key, prediction.metric] for key in checking if (key, prediction.metric) in times),
        other_link=len(ended) - len(on_link),
        disturbed=len(on_link) - len(checking),
    )


def score(checks: Iterable[PredictionCheck]) -> PredictionScore:
    """Return the summary of the checked predictions."""
    errors = [(abs(check.error), bool(check.inside)) for check in checks if check.error is not None]
    return PredictionScore(
        len(errors), sum(inside for _, inside in errors), median(e for e, _ in errors) if errors else None
    )


def plan_check(prediction: Prediction) -> MorePoints:
    """Return how to run the trials that check a prediction. Raise InvalidSpec."""
    if prediction.obstacle:
        raise _refused(prediction.obstacle)
    experiment = Experiment.objects.get(pk=prediction.experiment_id)
    if experiment.cluster_id != prediction.cluster_id:
        raise _refused("The experiment runs on another cluster now: make a new prediction.")
    if checks_of([prediction])[prediction.pk].waiting:
        raise _refused("Trials that check this prediction are already queued or running.")
    more = plan_configuration(experiment, prediction.parameters, TRIALS)
    if more is None:
        raise _refused(
            "This link cannot be added to the design of the experiment: it has too many trials, or has changed."
        )
    return more


def _refused(sentence: str) -> InvalidSpec:
    return InvalidSpec([FieldError("check", sentence)])
