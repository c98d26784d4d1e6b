"""What an experiment shows: the answer to its question, the diagnosis of its study, its observer effect, and what to measure next.

Models and bootstrap intervals take up to seconds, pages must not: the answer is kept, and stands until another configuration
completes. It is computed and kept in this one place; every face takes its words from here.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import structlog
from django.core.cache import cache
from redis.exceptions import RedisError

from analysis.answers import Answer, answer
from analysis.findings import Diagnosis, Report, diagnose
from analysis.scaling import ObserverEffect, Study, observer_effect
from experiments.models import UNFINISHED, Experiment, Kind, Measurement, Trial
from experiments.revision import plan_points
from experiments.selectors.question import asked_of
from experiments.selectors.study import study_of
from experiments.spec.parameters import MAX_HOSTS, MAX_RANKS

_FORM: Final = 7
"""Counts changes of what is kept: an answer in an older form is none."""
_KEPT_S: Final = 30 * 24 * 3600
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ObservedPoint:
    """The observer effect at one configuration."""

    parameters: Mapping[str, Any]
    effect: ObserverEffect

    def to_dict(self) -> dict[str, Any]:
        return {"parameters": self.parameters, **self.effect.to_dict()}


@dataclass(frozen=True, slots=True)
class KeptDiagnosis:
    """The diagnosis of an experiment's results as they were when its stamp was taken."""

    stamp: str
    answer: Answer
    study: Diagnosis
    next_queued: int
    """Trials that queueing the suggested points would add."""
    observer: tuple[ObservedPoint, ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, as REST answers."""
        return {
            "stamp": self.stamp,
            "answer": self.answer.to_dict(),
            **self.study.to_dict(),
            "next_queued": self.next_queued,
            "observer": [point.to_dict() for point in self.observer],
        }


def kept_diagnosis(experiment: Experiment) -> tuple[KeptDiagnosis | None, bool]:
    """Return the latest diagnosis (None: there is none yet), and whether it is that of the results as they are."""
    try:
        kept: KeptDiagnosis | None = cache.get(_key(experiment))
    except RedisError as error:  # the page stands without what it remembers
        log.warning("diagnosis_not_read", experiment=experiment.pk, reason=str(error))
        return None, False
    return kept, kept is not None and kept.stamp == _stamp(experiment)


def diagnosis_of(experiment: Experiment) -> KeptDiagnosis:
    """Return the diagnosis of the results as they are, made now where it is not kept."""
    kept, fresh = kept_diagnosis(experiment)
    if kept is not None and fresh:
        return kept
    made = _diagnose(experiment, _stamp(experiment))
    try:
        cache.set(_key(experiment), made, _KEPT_S)
    except RedisError as error:
        log.warning("diagnosis_not_kept", experiment=experiment.pk, reason=str(error))
    return made


def forget_diagnosis(experiment: Experiment) -> None:
    """Drop what is kept: the values of trials that had ended have changed."""
    cache.delete(_key(experiment))


def _key(experiment: Experiment) -> str:
    return f"diagnosis:{_FORM}:{experiment.pk}"


def _stamp(experiment: Experiment) -> str:
    """Return a hash of the trials of all complete configurations and of the hosts that the cluster has for more.

    While a configuration is being measured, the last word stands.
    """
    rows = Trial.objects.current().filter(experiment=experiment).order_by("pk")
    trials = list(rows.values_list("configuration_id", "pk", "state"))
    open_ones = {configuration for configuration, _, state in trials if state in UNFINISHED}
    ended = [row for row in trials if row[0] not in open_ones]
    has = experiment.cluster.hosts_to_suggest if experiment.cluster is not None else None
    return hashlib.sha256(repr((experiment.version, has, ended)).encode()).hexdigest()


def _diagnose(experiment: Experiment, stamp: str) -> KeptDiagnosis:
    study = study_of(experiment)
    diagnosis = diagnose(study, largest_size=_largest_runnable)
    answered = answer(asked_of(experiment, study))
    if answered.strength in ("firm", "moderate"):
        diagnosis = replace(diagnosis, report=_without_doubts(diagnosis.report))
    more = plan_points(experiment, diagnosis.suggested) if diagnosis.suggested else None
    return KeptDiagnosis(
        stamp=stamp,
        answer=answered,
        study=diagnosis,
        next_queued=more.queued if more is not None else 0,
        observer=tuple(_observed(experiment, study)),
    )


def _without_doubts(report: Report) -> Report:
    """Leave out what each size alone makes doubtful where all points together have answered."""
    return replace(report, findings=tuple(f for f in report.findings if f.rule != "few_repetitions"))


def _largest_runnable(study: Study) -> float:
    """The largest number of hosts that the cluster has and a specification may ask for."""
    ranks_per_host = max((int(point.parameters.get("ranks_per_host", 1)) for point in study.points), default=1)
    limits = [MAX_HOSTS, MAX_RANKS // ranks_per_host, *([] if study.most_hosts is None else [study.most_hosts])]
    return float(min(limits))


def _observed(experiment: Experiment, study: Study) -> list[ObservedPoint]:
    """Per configuration with a control: elapsed time with capture against without."""
    without = _control_times(experiment)
    rows = []
    for configuration in experiment.configurations.filter(in_design=True, pk__in=list(without)):
        point = next((p for p in study.points if p.parameters == configuration.parameters), None)
        captured = [] if point is None else point.array("elapsed_s").tolist()
        if captured:
            effect = observer_effect(captured, without[configuration.pk])
            rows.append(ObservedPoint(configuration.parameters, effect))
    return rows


def _control_times(experiment: Experiment) -> Mapping[int, list[float]]:
    """Return elapsed times of the finished trials without capture, by configuration."""
    rows = Measurement.objects.counted(Kind.CONTROL).filter(
        trial__experiment=experiment, metric="elapsed_s", scope="all"
    )
    times: dict[int, list[float]] = defaultdict(list)
    for configuration, value in rows.values_list("trial__configuration_id", "value"):
        times[configuration].append(value)
    return times
