"""What an experiment shows: the answer to its question, the diagnosis of its study, its observer effect, and what to measure next.

Models and bootstrap intervals take up to seconds, pages must not: the answer is kept, and stands until another configuration
completes. It is computed and kept in this one place; every face takes its words from here.
"""

from __future__ import annotations

import hashlib
import pickle
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

import structlog
from django.contrib.postgres.aggregates import StringAgg
from django.core.cache import cache
from django.db.models import Count, TextField, Value
from django.db.models.functions import Cast, Concat
from redis.exceptions import RedisError

from analysis.conclusions import (
    Answer,
    Diagnosis,
    Fact,
    Report,
    Together,
    answer,
    diagnose,
    facts,
    key_figures,
    place,
    together,
)
from analysis.scaling import ObserverEffect, Study, observer_effect
from experiments.models import UNFINISHED, Experiment, Kind, Measurement, State, Trial
from experiments.revision import plan_points
from experiments.selectors.question import asked_of
from experiments.selectors.study import study_of
from experiments.specification.parameters import MAX_HOSTS, MAX_RANKS

_FORM: Final = 31
"""Counts changes of what is kept: an answer in an older form is none."""
_KEPT_S: Final = 30 * 24 * 3600
_SCALE: Final = ("scale", "weak scale", "scale and treatment")
_MOST_TRIALS: Final = 200
"""Of an experiment whose answer a list may wait for; longer ones are answered on their own pages."""
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ObservedPoint:
    """The observer effect at one configuration."""

    parameters: Mapping[str, Any]
    effect: ObserverEffect

    def to_dict(self) -> dict[str, Any]:
        return {"parameters": self.parameters, **self.effect.to_dict()}


class KeptReport:
    """A report that is unpickled when it is asked for, whatever it is kept with."""

    def __init__(self, report: Report | None = None, packed: bytes = b"") -> None:
        self._report, self._packed = report, packed or pickle.dumps(report)

    def get(self) -> Report:
        report: Report = self._report or pickle.loads(self._packed)  # noqa: S301 - from our own cache, as what holds it
        self._report = report
        return report

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (None, self._packed)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeptReport) and self.get() == other.get()

    __hash__ = None  # type: ignore[assignment]  # as a report, which holds mappings


@dataclass(frozen=True, slots=True)
class KeptDiagnosis:
    """The diagnosis of an experiment's results as they were when its stamp was taken."""

    stamp: str
    answer: Answer
    facts: tuple[Fact, ...]
    """What the findings of the study come to, each said once; causes first."""
    key_figures: tuple[tuple[str, str], ...]
    """The answer's numbers as names and words."""
    study: Diagnosis
    """Its report is brief: pages take the facts, and the thousands of findings of hundreds of slices cost each of them 50 ms."""
    report: KeptReport
    """The whole one."""
    next_queued: int
    """Trials that queueing the suggested points would add."""
    observer: tuple[ObservedPoint, ...]

    @property
    def suggested(self) -> list[tuple[Mapping[str, Any], int]]:
        """What to measure next, as (parameters, repetitions): what would settle the question, else what a model would learn from."""
        missing = self.answer.missing
        if missing is not None and missing.points:
            return list(missing.points)
        return self.study.suggested if self.answer.question in _SCALE else []

    def findings(self) -> dict[str, Any]:
        """JSON-ready, without the numbers behind the findings."""
        told = {"answer": self.answer.to_dict(), "facts": [fact.to_dict() for fact in self.facts]}
        return told | self.report.get().to_dict()

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, as REST answers."""
        return {
            "stamp": self.stamp,
            "answer": self.answer.to_dict(),
            "facts": [fact.to_dict() for fact in self.facts],
            **replace(self.study, report=self.report.get()).to_dict(),
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
    _keep_answer(experiment, _counted([experiment]).get(experiment.pk, 0), made.answer)
    return made


def answers_of(experiments: Sequence[Experiment]) -> dict[int, Answer]:
    """Return the answers that are kept, and those that can be had quickly, by experiment: for lists. One query where all are kept."""
    counted = _counted(experiments)
    kept = _kept_answers([experiment for experiment in experiments if counted.get(experiment.pk)])
    answers = {}
    for experiment in experiments:
        count = counted.get(experiment.pk, 0)
        then, told = kept.get(experiment.pk, (0, None))
        if told is not None and (then == count or count > _MOST_TRIALS):
            answers[experiment.pk] = told
        elif 0 < count <= _MOST_TRIALS:
            # Without the models, which take most of the time.
            made = answer(asked_of(experiment, study_of(experiment, with_traffic=False)))
            _keep_answer(experiment, count, made)
            answers[experiment.pk] = made
    return answers


def together_of(experiment: Experiment) -> Together:
    """Return the intervals that the answer of the results as they are tells, of any of its points."""
    count = _counted([experiment]).get(experiment.pk, 0)
    with suppress(RedisError):
        kept: tuple[int, Together] | None = cache.get(_together_key(experiment))
        if kept is not None and kept[0] == count:
            return kept[1]
    return _keep_together(experiment, count, together(asked_of(experiment, study_of(experiment, with_traffic=False))))


def _keep_together(experiment: Experiment, count: int, made: Together) -> Together:
    with suppress(RedisError):
        cache.set(_together_key(experiment), (count, made), _KEPT_S)
    return made


def _counted(experiments: Sequence[Experiment]) -> dict[int, int]:
    """Return the number of counted trials by experiment."""
    rows = Trial.objects.current().filter(experiment__in=experiments, state=State.FINISHED, kind=Kind.MEASURED)
    return dict(rows.order_by().values_list("experiment").annotate(count=Count("pk")))


def _kept_answers(experiments: Sequence[Experiment]) -> dict[int, tuple[int, Answer]]:
    keys = {_answer_key(experiment): experiment.pk for experiment in experiments}
    try:
        return {keys[key]: told for key, told in cache.get_many(keys).items()}
    except RedisError:
        return {}


def _keep_answer(experiment: Experiment, count: int, told: Answer) -> None:
    with suppress(RedisError):
        cache.set(_answer_key(experiment), (count, told), _KEPT_S)


def forget_diagnosis(experiment: Experiment) -> None:
    """Drop what is kept: the values of trials that had ended have changed."""
    cache.delete_many([_key(experiment), _answer_key(experiment), _together_key(experiment)])


def _key(experiment: Experiment) -> str:
    return f"diagnosis:{_FORM}:{experiment.pk}"


def _answer_key(experiment: Experiment) -> str:
    return f"answer:{_FORM}:{experiment.pk}"


def _together_key(experiment: Experiment) -> str:
    return f"together:{_FORM}:{experiment.pk}"


def _stamp(experiment: Experiment) -> str:
    """Return a hash of the trials of all complete configurations and of what the cluster has: hosts for more, the stated rate of its links.

    While a configuration is being measured, the last word stands.
    """
    rows = Trial.objects.current().filter(experiment=experiment).order_by()
    open_ones = rows.filter(state__in=UNFINISHED).values("configuration_id")
    # Of ten thousand trials one text, and not as many rows.
    columns = [Cast(name, TextField()) for name in ("configuration_id", "pk", "state")]
    between = Value(" ", output_field=TextField())
    each = Concat(columns[0], between, columns[1], between, columns[2], output_field=TextField())
    ended = rows.exclude(configuration__in=open_ones).aggregate(all=StringAgg(each, ",", order_by="pk"))["all"]
    cluster = experiment.cluster
    has = None if cluster is None else (cluster.hosts_to_suggest, cluster.facts.get("link_bandwidth_bps"))
    return hashlib.sha256(repr((experiment.version, has, ended)).encode()).hexdigest()


def _diagnose(experiment: Experiment, stamp: str) -> KeptDiagnosis:
    study = study_of(experiment)
    asked = asked_of(experiment, study)
    together_intervals = _keep_together(experiment, _counted([experiment]).get(experiment.pk, 0), together(asked))
    told = together_intervals if together_intervals.metric == study.time_metric else None
    study = replace(study, describe=lambda point: place(asked.factors, point.parameters), intervals=told)
    diagnosis = diagnose(study, largest_size=_largest_runnable, asked=asked)
    answered = answer(asked)
    made = KeptDiagnosis(
        stamp=stamp,
        answer=answered,
        facts=facts(asked, answered, diagnosis.report),
        key_figures=key_figures(answered, asked.factors),
        study=replace(diagnosis, report=diagnosis.report.brief()),
        report=KeptReport(diagnosis.report),
        next_queued=0,
        observer=tuple(_observed(experiment, study)),
    )
    # Of what was measured elsewhere nothing more is run, and its program may not be known here.
    runs_here = not experiment.is_imported
    more = plan_points(experiment, made.suggested) if made.suggested and runs_here else None
    return replace(made, next_queued=more.queued) if more is not None else made


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
