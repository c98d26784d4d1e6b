"""Diagnosis of an experiment: answer, study, capture overhead and next trials.

Models and bootstrap intervals take up to seconds, so the diagnosis is cached until another configuration completes. All pages and REST
read it here.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

import structlog
from django.core.cache import cache
from django.db.models import Count, Q
from redis.exceptions import RedisError

from analysis.conclusions import (
    Answer,
    Deciding,
    Diagnosis,
    ExperimentIntervals,
    Fact,
    answer,
    diagnose,
    experiment_intervals,
    facts,
    key_figures,
    point_words,
)
from analysis.scaling import ObserverEffect, Study, observer_effect
from experiments.metrics import find
from experiments.models import UNFINISHED, Experiment, Kind, Measurement, State, Trial
from experiments.revision import plan_points
from experiments.selectors.question import question_of
from experiments.selectors.study import study_of
from experiments.specification.parameters import MAX_HOSTS, MAX_RANKS

_FORM: Final = 57
"""Version of the cached data; older ones are ignored."""
_CACHE_S: Final = 30 * 24 * 3600
_STUDY: Final = 0.15
_ANSWER: Final = 0.3
"""Shares of the time until the trials are read, and until the answer is known."""
Progress = Callable[[float], None]
_SCALE: Final = ("scale", "weak scale", "scale and treatment")
_RENEWALS: Final = 8
"""Answers of a running experiment, in addition to those of complete configurations."""
_MOST_TRIALS: Final = 200
"""Maximum trials of an experiment whose answer a list computes; larger ones only on their own pages."""
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ObservedPoint:
    """The observer effect at one configuration."""

    parameters: Mapping[str, Any]
    effect: ObserverEffect

    def to_dict(self) -> dict[str, Any]:
        return {"parameters": self.parameters, **self.effect.to_dict()}


@dataclass(frozen=True, slots=True)
class _Look:
    """The counted trials of an experiment."""

    trials: int
    as_of: tuple[int, ...]
    """Changes when the answer is computed again."""


@dataclass(frozen=True, slots=True)
class CachedDiagnosis:
    """The cached diagnosis of an experiment's results at the time of its stamp."""

    stamp: str
    answer: Answer
    facts: tuple[Fact, ...]
    """The conclusions of the findings, causes first."""
    key_figures: tuple[tuple[str, str], ...]
    """The answer's numbers as names and text."""
    study: Diagnosis
    next_queued: int
    """Trials that the recommended next trials would queue."""
    observer: tuple[ObservedPoint, ...]

    @property
    def suggested(self) -> list[tuple[Mapping[str, Any], int]]:
        """Return the recommended next trials as (parameters, repetitions).

        A conclusive answer needs no further repetitions: only sizes that are not measured yet.
        """
        missing = self.answer.missing
        if missing is not None and missing.points:
            return list(missing.points)
        if self.answer.question not in _SCALE:
            return []
        return self.study.unmeasured if self.answer.strength == "firm" else self.study.suggested

    def findings(self) -> dict[str, Any]:
        """Return answer, facts and findings as JSON-ready data."""
        data = {"answer": self.answer.to_dict(), "facts": [fact.to_dict() for fact in self.facts]}
        return data | self.study.report.to_dict()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-ready form of REST."""
        return {
            "stamp": self.stamp,
            "answer": self.answer.to_dict(),
            "facts": [fact.to_dict() for fact in self.facts],
            **self.study.to_dict(),
            "next_queued": self.next_queued,
            "observer": [point.to_dict() for point in self.observer],
        }


def cached_diagnosis(experiment: Experiment) -> tuple[CachedDiagnosis | None, bool]:
    """Return the cached diagnosis or None, and whether it is current."""
    try:
        cached: CachedDiagnosis | None = cache.get(_key("diagnosis", experiment))
    except RedisError as error:  # pages work without the cache
        log.warning("diagnosis_not_read", experiment=experiment.pk, reason=str(error))
        return None, False
    return cached, cached is not None and cached.stamp == _stamp(experiment)


def diagnosis_of(experiment: Experiment, *, progress: Progress = lambda share: None) -> CachedDiagnosis:
    """Return the current diagnosis, computed if not cached; report the ``progress``."""
    cached, fresh = cached_diagnosis(experiment)
    if cached is not None and fresh:
        return cached
    made = _diagnose(experiment, _stamp(experiment), progress)
    _keep(_key("diagnosis", experiment), made)
    _keep(_key("token", experiment), secrets.token_hex(8))
    _keep(_key("answer", experiment), (_looks([experiment]).get(experiment.pk), made.answer))
    return made


def diagnosis_token(experiment: Experiment) -> str | None:
    """Return the token of the cached diagnosis: another one for each computation."""
    token: str | None = cache.get(_key("token", experiment))
    return token


def answers_of(experiments: Sequence[Experiment]) -> dict[int, Answer]:
    """Return cached answers, and those of small experiments, by experiment.

    They are those of the experiments' pages. One query if all are cached and no trial is open, else two.
    """
    looks = _looks(experiments)
    counted = {experiment: look.trials for experiment, look in looks.items()}
    cached = _cached_answers([experiment for experiment in experiments if counted.get(experiment.pk)])
    answers = {}
    for experiment in experiments:
        count = counted.get(experiment.pk, 0)
        then, answered = cached.get(experiment.pk, (None, None))
        look = looks.get(experiment.pk)
        is_current = then is not None and look is not None and then.as_of == look.as_of
        if answered is None and is_current:
            continue  # could not be computed of these trials
        if answered is not None and (count > _MOST_TRIALS or is_current):
            answers[experiment.pk] = answered
        elif 0 < count <= _MOST_TRIALS:
            # Without the models, which take most of the time.
            try:
                made = answer(question_of(experiment, study_of(experiment, with_traffic=False)))
            except (ArithmeticError, LookupError, TypeError, ValueError):
                # Values that no program measured, which may be imported, must not end lists with other experiments.
                log.exception("answer_not_computed", experiment=experiment.pk)
                _keep(_key("answer", experiment), (look, None))
                continue
            _keep(_key("answer", experiment), (look, made))
            answers[experiment.pk] = made
    return answers


def last_strengths(experiments: Sequence[Experiment]) -> dict[int, str]:
    """Return the strengths of the last cached answers by experiment, without a query."""
    return {pk: answered.strength for pk, (_, answered) in _cached_answers(experiments).items() if answered is not None}


def last_answer(experiment: Experiment) -> Answer | None:
    """Return the last cached answer, without a query."""
    return _cached_answers([experiment]).get(experiment.pk, (None, None))[1]


def together_of(experiment: Experiment) -> ExperimentIntervals:
    """Return the simultaneous intervals of the answer."""
    count = _counted([experiment]).get(experiment.pk, 0)
    with suppress(RedisError):
        cached: tuple[int, ExperimentIntervals] | None = cache.get(_key("together", experiment))
        if cached is not None and cached[0] == count:
            return cached[1]
    return _keep_together(
        experiment, count, experiment_intervals(question_of(experiment, study_of(experiment, with_traffic=False)))
    )


def intervals_of(experiment: Experiment, *metrics: str) -> list[ExperimentIntervals]:
    """Return the intervals of metrics at the points of the answer, as if each decided."""
    question = question_of(experiment, study_of(experiment, with_traffic=False))
    made = []
    for metric in metrics:
        deciding = Deciding(metric, find(metric).label, find(metric).unit)
        points = [point for point in question.points if min(point.values.get(metric, ()), default=1.0) > 0]
        made.append(experiment_intervals(replace(question, deciding=deciding, points=points, prior=None, peak=None)))
    return made


def _keep_together(experiment: Experiment, count: int, made: ExperimentIntervals) -> ExperimentIntervals:
    _keep(_key("together", experiment), (count, made))
    return made


def _keep(key: str, made: Any) -> None:
    with suppress(RedisError):
        cache.set(key, made, _CACHE_S)


def renewal_step(trials: int) -> int:
    """Return how many more trials renew a running answer: an eighth, at least 2."""
    return max(2, -(-trials // _RENEWALS))


def _counted(experiments: Sequence[Experiment]) -> dict[int, int]:
    """Return the number of counted trials by experiment."""
    rows = Trial.objects.current().filter(experiment__in=experiments, state=State.FINISHED, kind=Kind.MEASURED)
    return dict(rows.order_by().values_list("experiment").annotate(count=Count("pk")))


def _looks(experiments: Sequence[Experiment]) -> dict[int, _Look]:
    """Return the trials of which the answers are, by experiment.

    Answers change if a configuration completes, if every configuration has one more trial, or after an eighth of the trials.
    """
    is_counted, is_open = Q(state=State.FINISHED, kind=Kind.MEASURED), Q(state__in=UNFINISHED)
    counts = {"counted": Count("pk", filter=is_counted), "open": Count("pk", filter=is_open)}
    waiting = Count("pk", filter=is_open & Q(kind=Kind.MEASURED))
    rows = Trial.objects.current().filter(is_counted | is_open, experiment__in=experiments).order_by()
    by_experiment = list(rows.values_list("experiment").annotate(**counts, waiting=waiting))
    looks = {experiment: _Look(counted, (counted,)) for experiment, counted, _, _ in by_experiment}
    renewals = {experiment: counted // renewal_step(counted + w) for experiment, counted, _, w in by_experiment}
    running = [experiment for experiment, counted, unfinished, _ in by_experiment if unfinished and counted]
    points: dict[int, list[tuple[int, int]]] = defaultdict(list)
    if running:
        # With configurations of which every trial failed: they have 0, as for the page.
        of_running = Trial.objects.current().filter(experiment__in=running).order_by()
        of_points = of_running.values_list("experiment", "configuration").annotate(**counts)
        for experiment, _, counted, unfinished in of_points:
            points[experiment].append((counted, unfinished))
    for experiment, members in points.items():
        complete = sum(counted for counted, unfinished in members if not unfinished)
        as_of = (complete, min(counted for counted, _ in members), renewals[experiment])
        looks[experiment] = replace(looks[experiment], as_of=as_of)
    return looks


def _cached_answers(experiments: Sequence[Experiment]) -> dict[int, tuple[_Look | None, Answer | None]]:
    keys = {_key("answer", experiment): experiment.pk for experiment in experiments}
    try:
        return {keys[key]: answered for key, answered in cache.get_many(keys).items()}
    except RedisError:
        return {}


def forget_diagnosis(experiment: Experiment) -> None:
    """Drop the cached results after values of ended trials have changed."""
    cache.delete_many([_key(kind, experiment) for kind in ("token", "diagnosis", "answer", "together")])


def _key(kind: str, experiment: Experiment) -> str:
    return f"{kind}:{_FORM}:{experiment.pk}"


def _stamp(experiment: Experiment) -> str:
    """Return a hash of the trials of complete configurations, and cluster limits.

    While a configuration is incomplete, it changes with the first counted trial, if every one has one more, and after each
    eighth of the trials.
    """
    rows = Trial.objects.current().filter(experiment=experiment).order_by()
    trials = list(rows.order_by("pk").values_list("configuration_id", "pk", "state", "kind"))
    open_ones = {configuration for configuration, _, state, _ in trials if state in UNFINISHED}
    ended = [row[:3] for row in trials if row[0] not in open_ones]
    if not ended:
        ended = list(rows.counted().order_by("ended_at", "pk").values_list("configuration_id", "pk", "state")[:1])
    counted = Counter({row[0]: 0 for row in trials})
    counted.update(row[0] for row in trials if row[2:] == (State.FINISHED, Kind.MEASURED))
    measured = sum(kind == Kind.MEASURED and state in (State.FINISHED, *UNFINISHED) for _, _, state, kind in trials)
    fewest = (min(counted.values()), counted.total() // renewal_step(measured)) if open_ones else None
    cluster = experiment.cluster
    has = None if cluster is None else (cluster.hosts_to_suggest, cluster.facts.get("link_bandwidth_bps"))
    return hashlib.sha256(repr((experiment.version, has, ended, fewest)).encode()).hexdigest()


def _diagnose(experiment: Experiment, stamp: str, progress: Progress) -> CachedDiagnosis:
    study = study_of(experiment)
    question = question_of(experiment, study)
    progress(_STUDY)
    intervals = _keep_together(experiment, _counted([experiment]).get(experiment.pk, 0), experiment_intervals(question))
    simultaneous = intervals if intervals.metric == study.time_metric else None
    study = replace(
        study, describe=lambda point: point_words(question.factors, point.parameters), intervals=simultaneous
    )
    answered = answer(question)
    progress(_ANSWER)
    diagnosis = diagnose(
        study,
        largest_size=_largest_runnable,
        question=question,
        progress=lambda share: progress(_ANSWER + (1 - _ANSWER) * share),
    )
    made = CachedDiagnosis(
        stamp=stamp,
        answer=answered,
        facts=facts(question, answered, diagnosis.report),
        key_figures=key_figures(answered, question.factors, is_rate=question.deciding.higher_is_better),
        study=diagnosis,
        next_queued=0,
        observer=tuple(_observed(experiment, study)),
    )
    # Imported experiments run no more, and their program may be unknown.
    runs_here = not experiment.is_imported
    more = plan_points(experiment, made.suggested) if made.suggested and runs_here else None
    return replace(made, next_queued=more.queued) if more is not None else made


def _largest_runnable(study: Study) -> float:
    """Return the largest number of hosts that cluster and specification allow."""
    ranks_per_host = max((int(point.parameters.get("ranks_per_host", 1)) for point in study.points), default=1)
    limits = [MAX_HOSTS, MAX_RANKS // ranks_per_host, *([] if study.most_hosts is None else [study.most_hosts])]
    return float(min(limits))


def _observed(experiment: Experiment, study: Study) -> list[ObservedPoint]:
    """Return the observer effect of each configuration with control runs."""
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
    """Return elapsed times of finished control runs by configuration."""
    rows = Measurement.objects.counted(Kind.CONTROL).filter(
        trial__experiment=experiment, metric="elapsed_s", scope="all"
    )
    times: dict[int, list[float]] = defaultdict(list)
    for configuration, value in rows.values_list("trial__configuration_id", "value"):
        times[configuration].append(value)
    return times
