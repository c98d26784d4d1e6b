"""One configuration on one cluster over time, in whatever experiments it was run: steps, what changed with them, who expected them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import QuerySet

from analysis.statistics import History, HistoryPoint, detect_changes
from experiments.access import visible_trials
from experiments.comparison import flat
from experiments.models import Cluster, Configuration, Environment, ExpectedChange, Kind, Measurement, State, Trial

MOST_TRIALS: Final = 300
"""The newest trials that are read: shuffled histories are compared, which costs with their length."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One trial of a history."""

    trial: int
    value: float
    ended_at: Any
    experiment: str
    experiment_name: str
    trust: str


@dataclass(frozen=True, slots=True)
class ConfigurationHistory:
    """Trials oldest first, the steps between them, and the marks that people set (by trial)."""

    configuration: Configuration
    cluster: Cluster
    metric: str
    entries: list[Entry]
    history: History
    expected: dict[int, ExpectedChange]
    metrics: list[str]
    cut: bool

    def to_dict(self) -> dict[str, Any]:
        """Return the same as plain data."""
        return {
            "configuration": self.configuration.hash,
            "parameters": self.configuration.parameters,
            "cluster": self.cluster.slug,
            "metric": self.metric,
            "trials": [
                {"trial": e.trial, "value": e.value, "ended_at": e.ended_at.isoformat(), "experiment": e.experiment}
                for e in self.entries
            ],
            "expected": [{"trial": trial, "reason": mark.reason} for trial, mark in sorted(self.expected.items())],
            **self.history.to_dict(),
        }


def history_of(user: Any, configuration: str, cluster: str, metric: str) -> ConfigurationHistory:
    """Return the history of a configuration (its hash) on a cluster (its slug) in six queries.

    Only counted trials of experiments that ``user`` may see. Raise Configuration.DoesNotExist when there is none.
    """
    trials = counted(user, configuration, cluster)
    newest = list(
        trials.select_related("configuration", "cluster", "experiment")
        .only(
            "pk",
            "ended_at",
            "trust",
            "environment_id",
            "experiment__slug",
            "experiment__name",
            "cluster",
            "configuration",
        )
        .order_by("-ended_at", "-pk")[: MOST_TRIALS + 1]
    )
    if not newest:
        raise Configuration.DoesNotExist
    kept = newest[:MOST_TRIALS][::-1]
    keys = [trial.pk for trial in kept]
    values = dict(
        Measurement.objects.filter(trial__in=keys, metric=metric, scope="all").values_list("trial_id", "value")
    )
    measured = [trial for trial in kept if trial.pk in values]
    expected = {mark.trial_id: mark for mark in ExpectedChange.objects.filter(trial__in=keys, metric=metric)}
    return ConfigurationHistory(
        configuration=kept[-1].configuration,
        cluster=kept[-1].cluster,  # type: ignore[arg-type]  # found by its cluster
        metric=metric,
        entries=[_entry(trial, values[trial.pk]) for trial in measured],
        history=_history(measured, values, expected),
        expected=expected,
        metrics=list(
            Measurement.objects.filter(trial=keys[-1], scope="all").values_list("metric", flat=True).order_by("metric")
        ),
        cut=len(newest) > MOST_TRIALS,
    )


def counted(user: Any, configuration: str, cluster: str) -> QuerySet[Trial]:
    """Return the counted trials of a configuration on a cluster, also those that the current design no longer asks for."""
    return visible_trials(user).filter(
        configuration__hash=configuration,
        cluster__slug=cluster,
        state=State.FINISHED,
        kind=Kind.MEASURED,
        superseded=False,
    )


def _history(trials: Sequence[Trial], values: dict[int, float], expected: dict[int, ExpectedChange]) -> History:
    keys = {trial.environment_id for trial in trials if trial.environment_id}
    facts = {e.pk: dict(flat(e.facts)) for e in Environment.objects.filter(pk__in=keys)}
    points = [
        HistoryPoint(values[trial.pk], facts.get(trial.environment_id or 0, {}), f"trial {trial.pk}")
        for trial in trials
    ]
    return detect_changes(points, expected={n for n, trial in enumerate(trials) if trial.pk in expected})


def _entry(trial: Trial, value: float) -> Entry:
    return Entry(trial.pk, value, trial.ended_at, trial.experiment.slug, trial.experiment.name, trial.trust)


def expect(trial: Trial, metric: str, reason: str, author: Any) -> ExpectedChange:
    """Mark a change as expected from ``trial`` on; an earlier mark of the same change gets the new reason."""
    mark, _ = ExpectedChange.objects.update_or_create(
        trial=trial, metric=metric, defaults={"reason": reason[:300], "author": author}
    )
    return mark
