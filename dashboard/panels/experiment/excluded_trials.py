"""Excluded trials of an experiment, and trials that a new version drops."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from django.db.models import Count, Q

from analysis.scaling import DISTURBED
from analysis.trust_level import FLAGGED
from dashboard.labels import parameters_sentence
from experiments.models import UNFINISHED, Experiment, Kind, Trial
from experiments.models.states import excluded_as_disturbed
from experiments.revision import Revision
from experiments.specification import ExperimentSpec

MOST_POINTS = 12
_SETUP = ("cluster", "capture")
"""Return the settings that define comparable trials: cluster and capture."""


@dataclass(frozen=True, slots=True)
class Stale:
    """Measured trials that a new version drops."""

    points: list[tuple[str, int]]
    """(Point, stale trials) in the order of the design, at most MOST_POINTS."""
    hidden: int
    """Number of further points."""
    repetitions: int
    surplus: int
    """Measured trials beyond the `repetitions` of the new version, which still count."""


def stale_points(experiment: Experiment, spec: ExperimentSpec, change: Revision) -> Stale:
    """Return the points that ``change`` (the preview of ``spec``) drops. One query."""
    moved = changed_setup(experiment.specification, spec.to_dict()) != ""
    over = ~Q(trials__state__in=UNFINISHED) & Q(trials__superseded=False)
    beyond = over & Q(trials__kind=Kind.MEASURED, trials__repetition__gt=spec.at_least)
    rows = (
        experiment.configurations.filter(in_design=True)
        .annotate(over=Count("trials", filter=over), beyond=Count("trials", filter=beyond))
        .order_by("position")
        .values_list("parameters", "over", "beyond")
    )
    leaving, swept = {_key(parameters) for parameters in change.leaving}, swept_of(experiment)
    measured = [(parameters, over, beyond, moved or _key(parameters) in leaving) for parameters, over, beyond in rows]
    points = [
        (parameters_sentence(parameters, swept), over) for parameters, over, _, dropped in measured if dropped and over
    ]
    return Stale(
        points=points[:MOST_POINTS],
        hidden=max(0, len(points) - MOST_POINTS),
        repetitions=spec.at_least,
        surplus=sum(beyond for _, _, beyond, dropped in measured if not dropped),
    )


def why_apart(experiment: Experiment, trials: Sequence[Trial]) -> dict[int, str]:
    """Return the reason of each excluded trial of ``experiment`` by key.

    At most three queries; none if every trial counts and none is flagged.
    """
    replaced = [trial for trial in trials if trial.superseded]
    changes = _setup_changes(experiment) if replaced else []
    attempts = _attempts(replaced)
    reasons, disturbed = {}, []
    for trial in trials:
        if trial.superseded:
            reasons[trial.pk] = _why_superseded(trial, attempts, changes)
        elif not trial.configuration.in_design:
            reasons[trial.pk] = f"revision {experiment.version} does not contain its point"
        elif trial.trust in FLAGGED:
            disturbed.append(trial.pk)
    excluded = Trial.objects.filter(excluded_as_disturbed(), pk__in=disturbed) if disturbed else Trial.objects.none()
    return reasons | dict.fromkeys(excluded.values_list("pk", flat=True), DISTURBED)


def changed_setup(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Return the difference: '', 'the cluster', 'the cluster and the capture'."""
    return " and ".join(f"the {name}" for name in _SETUP if before.get(name) != after.get(name))


def swept_of(experiment: Experiment) -> list[str]:
    """Return the parameters that name a point of this experiment."""
    return list(experiment.specification.get("sweep", {})) or ["hosts"]


def _key(parameters: Mapping[str, Any]) -> str:
    return json.dumps(parameters, sort_keys=True)


def _setup_changes(experiment: Experiment) -> list[tuple[int, str]]:
    """Return (version, change) of each change of cluster or capture, oldest first."""
    versions = list(experiment.versions.order_by("number").values_list("number", "specification"))
    changes = [(number, changed_setup(before, after)) for (_, before), (number, after) in pairwise(versions)]
    return [(number, words) for number, words in changes if words]


def _attempts(trials: Sequence[Trial]) -> dict[tuple[Any, ...], int]:
    if not trials:
        return {}
    rows = Trial.objects.filter(configuration__in={trial.configuration_id for trial in trials}, attempt__gt=1)
    columns = rows.values_list("configuration_id", "kind", "repetition", "attempt", "version")
    return {tuple(attempt): version for *attempt, version in columns}


def _why_superseded(trial: Trial, attempts: Mapping[tuple[Any, ...], int], changes: Sequence[tuple[int, str]]) -> str:
    # A change of cluster or capture supersedes every earlier trial, and queues its design again.
    following = trial.attempt + 1
    version_of_attempt = attempts.get((trial.configuration_id, trial.kind, trial.repetition, following))
    change = next(((number, words) for number, words in changes if number > trial.version), None)
    if change is not None and (version_of_attempt is None or version_of_attempt >= change[0]):
        return f"revision {change[0]} changed {change[1]} after it"
    return f"attempt {following} replaces it"
