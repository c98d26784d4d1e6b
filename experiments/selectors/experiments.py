"""Experiments for pages and REST, each function with a fixed number of queries."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np
from django.db import connection
from django.db.models import Count, Exists, F, Min, OuterRef, Q, QuerySet

from analysis.trust_level import FLAGGED
from experiments.models import (
    ACTIVE,
    BLOCKING,
    FAILED,
    Configuration,
    Experiment,
    Hold,
    Kind,
    Measurement,
    Round,
    State,
    Status,
    Trial,
)
from experiments.models.states import NOT_REQUESTED, excluded_as_disturbed
from experiments.models.usage import use_of_ready_projects
from experiments.selectors.counted_values import CountedValues, counted_values
from experiments.traffic import in_statistics, is_traffic


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of an experiment, without replaced attempts."""

    total: int = 0
    queued: int = 0
    active: int = 0
    finished: int = 0
    failed: int = 0
    cancelled: int = 0
    not_started: int = 0
    """Cancelled trials of a design of which only the first trial was started."""
    flagged: int = 0
    warmups: int = 0
    held: bool = False
    """The waiting trials are on hold until a user releases them."""
    paused: bool = False
    """A user paused the rounds."""
    in_round: bool = False
    """A round of its goal is not decided yet."""

    @property
    def over(self) -> int:
        return self.finished + self.failed + self.cancelled

    @property
    def is_over(self) -> bool:
        return not self.queued and not self.active and not self.in_round

    @property
    def stopped(self) -> int:
        """Count the trials that a user or a failure cancelled."""
        return self.cancelled - self.not_started

    @property
    def is_held(self) -> bool:
        return self.held and bool(self.queued) and not self.active

    @property
    def status(self) -> Status:
        if not self.total:
            return Status.EMPTY
        if self.is_held:
            return Status.HELD
        if self.paused and not self.active and not self.is_over:
            return Status.PAUSED
        if self.active or (self.over and not self.is_over):
            return Status.RUNNING
        if self.queued:
            return Status.WAITING
        if self.finished:
            return Status.FINISHED
        return Status.CANCELLED if self.stopped or not self.failed else Status.FAILED


@dataclass(frozen=True, slots=True)
class TrialMark:
    """One dot of the trial overview."""

    pk: int
    state: str
    kind: str
    repetition: int
    attempt: int
    trust: str
    message: str


@dataclass(slots=True)
class ConfigurationRow:
    """A configuration with its trials and, per metric, the counted values.

    The traffic of flagged captures is not among the values.
    """

    pk: int
    hash: str
    hosts: int
    ranks: int
    parameters: Mapping[str, Any]
    trials: list[TrialMark] = field(default_factory=list)
    values: dict[str, list[float]] = field(default_factory=dict)
    trial_ids: dict[str, list[int]] = field(default_factory=dict)
    """Metric -> trials of the values, in the same order."""
    flagged: dict[str, list[float]] = field(default_factory=dict)
    """Traffic of flagged captures: displayed, but not in statistics."""

    @property
    def counted(self) -> int:
        """Return the number of counted trials with any value."""
        return max(map(len, self.values.values()), default=0)

    def median(self, metric: str) -> float | None:
        values = self.values.get(metric)
        return median(values) if values else None

    def range(self, metric: str) -> tuple[float, float] | None:
        values = self.values.get(metric)
        return (min(values), max(values)) if values else None


def progress_of(experiments: Iterable[Experiment]) -> dict[int, Progress]:
    """Return the progress of each experiment by key, in one query."""

    def count(condition: Q) -> Count:
        return Count("pk", filter=condition)

    hold = {e.pk: e.hold for e in experiments}
    open_rounds = Round.objects.filter(experiment=OuterRef("experiment_id"), outcome="")
    rows = (
        Trial.objects.current()
        .filter(experiment__in=[e.pk for e in experiments])
        .values("experiment_id")
        .annotate(
            total=Count("pk"),
            queued=count(Q(state=State.QUEUED)),
            active=count(Q(state__in=ACTIVE)),
            finished=count(Q(state=State.FINISHED)),
            failed=count(Q(state__in=FAILED)),
            cancelled=count(Q(state=State.CANCELLED)),
            not_started=count(Q(state=State.CANCELLED, message=NOT_REQUESTED)),
            flagged=count(Q(state=State.FINISHED, trust__in=FLAGGED)),
            warmups=count(Q(kind=Kind.WARMUP)),
            in_round=Exists(open_rounds),
        )
        .order_by()
    )
    progress: dict[int, Progress] = {}
    for row in rows:
        counts: dict[str, Any] = dict(row)
        experiment_id = counts.pop("experiment_id")
        progress[experiment_id] = Progress(
            **counts, held=hold[experiment_id] == Hold.HELD, paused=hold[experiment_id] == Hold.PAUSED
        )
    return {e.pk: progress.get(e.pk, Progress()) for e in experiments}


def is_open(experiment: Experiment) -> bool:
    """Return whether a trial has not ended, or a round of the goal is not decided."""
    trials = Exists(experiment.trials.current().unfinished())
    rounds = Exists(Round.objects.filter(experiment=experiment, outcome=""))
    return Experiment.objects.filter(trials | rounds, pk=experiment.pk).exists()


def busy_seconds(experiment: Experiment) -> float | None:
    """Return the seconds with trials in progress, without pauses over a minute.

    None without an ended trial. Earlier attempts count, as they took time too.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            """SELECT extract(epoch FROM sum(upper(span) - lower(span) - interval '1 minute')) FROM (
                 SELECT unnest(range_agg(tstzrange(preparing_at, ended_at + interval '1 minute'))) AS span
                 FROM experiments_trial WHERE experiment_id = %s AND preparing_at <= ended_at
               ) AS spans""",
            [experiment.pk],
        )
        (seconds,) = cursor.fetchone()
    return None if seconds is None else float(seconds)


def seconds_per_trial(experiment: Experiment) -> float | None:
    """Return the mean time of a trial, from the first preparation to the last end."""
    ended = experiment.trials.filter(preparing_at__isnull=False, ended_at__isnull=False).count()
    return seconds / ended if ended and (seconds := busy_seconds(experiment)) else None


def configuration_rows(experiment: Experiment, metrics: Sequence[str], *, scope: str = "all") -> list[ConfigurationRow]:
    """Return the current design with trials and values, in three queries."""
    rows = {
        c.pk: ConfigurationRow(c.pk, c.hash, c.hosts, c.ranks, c.parameters)
        for c in Configuration.objects.filter(experiment=experiment, in_design=True)
    }
    marks = Trial.objects.current().filter(experiment=experiment).order_by("kind", "repetition")
    columns = ("configuration_id", "pk", "state", "kind", "repetition", "attempt", "trust", "message")
    for configuration, pk, state, kind, repetition, attempt, trust, message in marks.values_list(*columns):
        first_line = message.partition("\n")[0]
        rows[configuration].trials.append(TrialMark(pk, state, kind, repetition, attempt, trust, first_line))
    values = counted_values(experiment, metrics, scope)
    for configuration, places in values.by_configuration().items():
        _fill(rows[configuration], values, places, scope)
    return list(rows.values())


def _fill(row: ConfigurationRow, values: CountedValues, indexes: Sequence[int], scope: str) -> None:
    """Set the values of a row from the trials at these indexes."""
    trials = [values.trials[index] for index in indexes]
    numbers = values.numbers[indexes]
    gaps: list[bool] = np.isnan(numbers).any(axis=0).tolist()  # type: ignore[assignment]  # one for each metric
    flagged = any(values.trust[index] in FLAGGED for index in indexes)
    for column, (metric, has_gaps) in enumerate(zip(values.metrics, gaps, strict=True)):
        column_values = numbers[:, column].tolist()
        if not has_gaps and not (flagged and is_traffic(metric, scope)):
            row.values[metric], row.trial_ids[metric] = column_values, trials
            continue
        for index, trial, value in zip(indexes, trials, column_values, strict=True):
            if math.isnan(value):
                continue
            if not in_statistics(values.trust[index], metric, scope):
                row.flagged.setdefault(metric, []).append(value)
                continue
            row.values.setdefault(metric, []).append(value)
            row.trial_ids.setdefault(metric, []).append(trial)


def excluded_trials_of(experiment: Experiment) -> QuerySet[Trial]:
    """Return excluded trials: replaced, disturbed, or out of the design."""
    replaced = Q(superseded=True) | Q(configuration__in_design=False)
    return Trial.objects.filter(replaced | excluded_as_disturbed(), experiment=experiment)


def excluded_trials(experiment: Experiment, most: int = 200) -> list[Trial]:
    """Return the newest excluded trials, newest first."""
    columns = (
        "state",
        "kind",
        "repetition",
        "attempt",
        "version",
        "superseded",
        "trust",
        "configuration",
        "experiment",
    )
    return list(excluded_trials_of(experiment).select_related("configuration").only(*columns).order_by("-pk")[:most])


def related_publications(experiment: Experiment) -> QuerySet[Experiment]:
    """Return published experiments of the same workload or with one of its figures."""
    figures = Measurement.objects.filter(trial__experiment=OuterRef("pk"), metric__startswith=f"{experiment.workload}.")
    alike = Q(workload=experiment.workload) | Exists(figures)
    return Experiment.objects.filter(alike, published=True).exclude(pk=experiment.pk)


def running_trials() -> QuerySet[Trial]:
    """Return the active trials with their related rows."""
    return Trial.objects.active().select_related("experiment", "configuration", "cluster").order_by("preparing_at")


def waiting() -> list[dict[str, Any]]:
    """Return the waiting trials per experiment, next first, without held experiments.

    ``used_s``: recent machine-seconds of the project; None if it used up its month.
    """
    rows = (
        Trial.objects.filter(state=State.QUEUED)
        .exclude(experiment__hold__in=BLOCKING)
        .values(
            "experiment_id",
            "cluster_id",
            project_id=F("experiment__project_id"),
            priority=F("experiment__priority"),
            slug=F("experiment__slug"),
            name=F("experiment__name"),
            workload=F("experiment__workload"),
            cluster_name=F("cluster__name"),
            cluster_enabled=F("cluster__enabled"),
        )
        .annotate(count=Count("pk"), since=Min("queued_at"))
        .order_by("-experiment__priority", "experiment_id")
    )
    used = use_of_ready_projects({row["project_id"] for row in rows}, Trial.objects.held_machine_s())
    queue = [{**row, "used_s": used.get(row["project_id"])} for row in rows]
    return sorted(queue, key=lambda row: math.inf if row["used_s"] is None else row["used_s"])


def neighbours(trial: Trial) -> tuple[int | None, int | None]:
    """Return the keys of the previous and next trial of the experiment."""
    order = list(
        Trial.objects.current()
        .filter(experiment_id=trial.experiment_id)
        .order_by("position", "attempt")
        .values_list("pk", flat=True)
    )
    if trial.pk not in order:
        return None, None
    here = order.index(trial.pk)
    return (order[here - 1] if here else None), (order[here + 1] if here + 1 < len(order) else None)


def repetitions_of(trial: Trial, metrics: Sequence[str]) -> dict[str, list[tuple[int, float]]]:
    """Return metric -> (trial key, value) of the configuration's counted trials.

    The traffic of flagged captures is excluded.
    """
    values: dict[str, list[tuple[int, float]]] = {metric: [] for metric in metrics}
    counted = Measurement.objects.counted().in_statistics()
    rows = counted.filter(trial__configuration=trial.configuration_id, metric__in=metrics, scope="all")
    for metric, trial_id, value in rows.values_list("metric", "trial_id", "value"):
        values[metric].append((trial_id, value))
    return values
