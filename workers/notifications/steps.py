"""Step changes that an ended experiment caused in histories, reported once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, cast

from django.db.models import QuerySet, Sum

from analysis import numbers
from analysis.conclusions.wording import lower_first, point_words
from analysis.statistics import HistoryPoint, detect_changes
from analysis.statistics.changes import SHORTEST, Change
from experiments.models import Event, ExpectedChange, Experiment, HistoryPart, Trial
from experiments.models.states import disturbed, excluded_as_disturbed, measured
from experiments.selectors.history import MOST_TRIALS
from experiments.selectors.history_list import FEWEST, METRIC
from experiments.selectors.question import question_of
from experiments.selectors.study import study_of

MOST_HISTORIES: Final = 50
"""Of one experiment that are looked at, those with the most trials: each costs up to a second."""


def steps_of(ended: Event) -> list[Event]:
    """Return an unsaved event for every history that the ended experiment changed."""
    experiment = ended.experiment
    if experiment is None or experiment.cluster is None:
        return []
    since = Event.objects.filter(kind=Event.Kind.ENDED, experiment=experiment, pk__lt=ended.pk).values_list(
        "at", flat=True
    )
    earlier = since.order_by("-pk").first()
    hashes = experiment.configurations.filter(in_design=True).values("hash")
    parts = HistoryPart.objects.filter(
        experiment__project=experiment.project_id, cluster=experiment.cluster_id, trials__gt=0
    )
    counts = parts.filter(hash__in=hashes).order_by().values_list("hash").annotate(count=Sum("trials"))
    events = []
    for digest, _ in counts.filter(count__gte=FEWEST).order_by("-count", "hash")[:MOST_HISTORIES]:
        history = newest_trials(parts.filter(hash=digest), experiment.cluster_id)
        is_new = [row[2] == experiment.pk and (earlier is None or row[3] > earlier) for row in history]
        step = _step([row[:2] for row in history], is_new)
        if step is not None:
            events.append(_event(experiment, digest, step))
    return events


def newest_trials(parts: QuerySet[HistoryPart], cluster: int | None) -> list[tuple[int, float, int, datetime]]:
    """Return (key, value, experiment, end) of a history's newest trials, oldest first.

    One query: no more parts with the newest ends are read than trials are needed.
    """
    newest = parts.order_by("-newest_at").values("configuration")[:MOST_TRIALS]
    of_metric = {"measurements__metric": METRIC, "measurements__scope": "all"}
    clean = measured() & ~excluded_as_disturbed()
    trials = Trial.objects.filter(clean, configuration__in=newest, cluster=cluster, ended_at__isnull=False, **of_metric)
    rows = trials.order_by("-ended_at", "-pk").values_list("pk", "measurements__value", "experiment", "ended_at")
    newest_first = cast(list[tuple[int, float, int, datetime]], list(rows[:MOST_TRIALS]))
    return newest_first[::-1]


def _step(history: Sequence[tuple[int, float]], is_new: Sequence[bool]) -> Change | None:
    """Return a step by new trials, labelled with its first trial."""
    expected = set(
        ExpectedChange.objects.filter(trial__in=[pk for pk, _ in history], metric=METRIC).values_list(
            "trial", flat=True
        )
    )
    reported = {int(key.rpartition(":")[2]) for key in _reported_keys([pk for pk, _ in history])}
    changes = _changes(history, expected)
    if not changes or changes[-1].expected or not any(is_new[changes[-1].index :]):
        return None
    last = changes[-1]
    before = _changes([row for row, new in zip(history, is_new, strict=True) if not new], expected)
    places = {pk: position for position, (pk, _) in enumerate(history)}
    # The place of a step moves by a trial or two as more follow: it is the same one.
    old = [places[int(change.label)] for change in before] + [places[pk] for pk in reported]
    if any(abs(position - last.index) < SHORTEST for position in old):
        return None
    return last


def _changes(history: Sequence[tuple[int, float]], expected: set[int]) -> Sequence[Change]:
    slowed = {*Trial.objects.filter(disturbed(), pk__in=[pk for pk, _ in history]).values_list("pk", flat=True)}
    points = [HistoryPoint(value, {}, str(pk), slowed=pk in slowed) for pk, value in history]
    return detect_changes(points, expected={n for n, (pk, _) in enumerate(history) if pk in expected}).changes


def _reported_keys(trials: Sequence[int]) -> list[str]:
    return list(Event.objects.filter(kind=Event.Kind.STEPPED, trial__in=trials).values_list("key", flat=True))


def _event(experiment: Experiment, digest: str, step: Change) -> Event:
    trial, before, after = int(step.label), step.before.median, step.after.median
    configuration = experiment.configurations.get(hash=digest)
    question = question_of(experiment, study_of(experiment, with_traffic=False))
    where = point_words(question.factors, configuration.parameters) or configuration.experiment.workload
    cluster = experiment.cluster.slug if experiment.cluster is not None else ""
    levels = f"{numbers.amount(after, 's')} instead of {numbers.amount(before, 's')}"
    changed = numbers.change(after / before if before else None)
    load = f" ({lower_first(step.load.removesuffix('.'))})" if step.load else ""  # lists show the first sentence alone
    sentence = f"At {where}, the median elapsed time is {levels} since trial {trial}: {changed}{load}."
    return Event(
        kind=Event.Kind.STEPPED,
        key=f"stepped:{digest}:{cluster}:{METRIC}:{trial}",
        experiment=experiment,
        trial_id=trial,
        data={"sentence": sentence, "configuration": digest, "cluster": cluster, "metric": METRIC},
    )
