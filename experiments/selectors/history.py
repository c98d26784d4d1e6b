"""History of one configuration on one cluster, with its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from django.db.models import BooleanField, ExpressionWrapper, F, FilteredRelation, OuterRef, Q, QuerySet, Subquery

from analysis.statistics import History, HistoryPoint, detect_changes
from experiments.access import visible_experiments, visible_trials
from experiments.common.facts import by_dotted_name
from experiments.models import Cluster, Configuration, Environment, ExpectedChange, HistoryPart, Measurement, Trial
from experiments.models.states import disturbed, excluded_as_disturbed, measured
from experiments.traffic import in_statistics

MOST_TRIALS: Final = 300
"""Newest trials that are read: the permutation test costs more with each."""


class Entry(NamedTuple):
    """One trial of a history."""

    trial: int
    value: float
    ended_at: Any
    experiment: str
    environment: int | None
    slowed: bool
    """By other load."""


@dataclass(frozen=True, slots=True)
class ConfigurationHistory:
    """Trials oldest first, their steps, and expected changes (by trial)."""

    configuration: Configuration
    cluster: Cluster
    metric: str
    entries: list[Entry]
    history: History
    expected: dict[int, ExpectedChange]
    metrics: list[str]
    flagged: list[int]
    """Trials with a flagged capture, whose traffic is excluded."""
    cut: bool
    excluded: int
    """Further trials of its time that other load slowed, with an undisturbed one of their experiment."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "configuration": self.configuration.hash,
            "parameters": self.configuration.parameters,
            "cluster": self.cluster.slug,
            "metric": self.metric,
            "trials": [
                {"trial": e.trial, "value": e.value, "ended_at": e.ended_at.isoformat(), "experiment": e.experiment}
                for e in self.entries
            ],
            "flagged_left_out": self.flagged,
            "expected": [{"trial": trial, "reason": mark.reason} for trial, mark in sorted(self.expected.items())],
            **self.history.to_dict(),
        }


def history_of(user: Any, configuration: str, cluster: str, metric: str) -> ConfigurationHistory:
    """Return the history of a configuration (hash) on a cluster (slug).

    Visible, measured trials only; six queries. Raise Configuration.DoesNotExist if there is none.
    """
    columns = ("pk", "value", "ended_at", "experiment__slug", "environment_id", "slowed", "trust")
    slowed = ExpressionWrapper(disturbed(), BooleanField())
    newest = list(with_value(user, configuration, cluster, metric).annotate(slowed=slowed).values_list(*columns))
    if not newest:
        raise Configuration.DoesNotExist
    rows = [row for row in newest[:MOST_TRIALS][::-1] if row[1] is not None]
    cut = len(newest) > MOST_TRIALS
    excluded = trials_of(user, configuration, cluster).filter(excluded_as_disturbed())
    entries = [Entry(*row[:-1]) for row in rows if in_statistics(row[-1], metric)]
    last = Trial.objects.select_related("configuration__experiment", "cluster").get(pk=newest[0][0])
    # Marks of the same configuration in hidden experiments have reasons that are not for this user.
    marks = ExpectedChange.objects.filter(trial__in=[row[0] for row in newest], metric=metric)
    expected = {mark.trial_id: mark for mark in marks}
    return ConfigurationHistory(
        configuration=last.configuration,
        cluster=last.cluster,  # type: ignore[arg-type]  # found by its cluster
        metric=metric,
        entries=entries,
        history=_history(entries, expected),
        expected=expected,
        metrics=list(
            Measurement.objects.filter(trial=last, scope="all").values_list("metric", flat=True).order_by("metric")
        ),
        flagged=[row[0] for row in rows if not in_statistics(row[-1], metric)],
        cut=cut,
        excluded=excluded.filter(**({"ended_at__gte": rows[0][2]} if cut and rows else {})).count(),
    )


def with_value(user: Any, configuration: str, cluster: str, metric: str) -> QuerySet[Trial]:
    """Return the newest measured trials with their ``value`` of a metric or None.

    Trials that other load slowed are excluded, as in statistics. One more than are read, newest first.
    """
    there = Subquery(Cluster.objects.filter(slug=cluster).values("pk"))
    seen = Subquery(visible_experiments(user).filter(pk=OuterRef("experiment")).order_by().values("pk"))
    # By key and per part: the index returns the newest parts first, and other parts and experiments are not read.
    parts = HistoryPart.objects.alias(seen=seen).filter(hash=configuration, cluster=there, seen__isnull=False)
    # Each part has at least one trial: the newest n trials are in the newest n parts.
    parts = parts.order_by("-newest_at")[: MOST_TRIALS + 1]
    clean = measured() & ~excluded_as_disturbed()
    trials = Trial.objects.filter(clean, configuration__in=parts.values("configuration"), cluster=there)
    newest = trials.filter(ended_at__isnull=False).order_by("-ended_at", "-pk").values("pk")[: MOST_TRIALS + 1]
    value_row = FilteredRelation("measurements", condition=Q(measurements__metric=metric, measurements__scope="all"))
    # first the trials, then their values: a history may be much longer
    rows = Trial.objects.filter(pk__in=newest).annotate(row=value_row).annotate(value=F("row__value"))
    return rows.order_by("-ended_at", "-pk")


def trials_of(user: Any, configuration: str, cluster: str) -> QuerySet[Trial]:
    """Return the measured trials of a configuration on a cluster, in any design.

    Imported trials without an end time have no place in a history.
    """
    whose = {"configuration__hash": configuration, "cluster__slug": cluster}
    return visible_trials(user).filter(measured(), ended_at__isnull=False, **whose)


def _history(entries: Sequence[Entry], expected: dict[int, ExpectedChange]) -> History:
    keys = {entry.environment for entry in entries if entry.environment}
    facts = {e.pk: by_dotted_name(e.facts) for e in Environment.objects.filter(pk__in=keys)}
    points = []
    for entry in entries:
        stated = facts.get(entry.environment or 0, {})
        label, transport = f"trial {entry.trial}", stated.get("transport", "")
        points.append(HistoryPoint(entry.value, stated, label, transport, entry.slowed))
    return detect_changes(points, expected={n for n, entry in enumerate(entries) if entry.trial in expected})


def expect(trial: Trial, metric: str, reason: str, author: Any) -> ExpectedChange:
    """Mark an expected change from ``trial`` on; an earlier mark gets the new reason."""
    mark, _ = ExpectedChange.objects.update_or_create(
        trial=trial, metric=metric, defaults={"reason": reason[:300], "author": author}
    )
    return mark
