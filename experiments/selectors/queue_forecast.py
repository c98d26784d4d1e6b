"""Queue forecast: start and end of experiments, from recent trial lengths."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median
from typing import Any, Final

from django.db.models import Count, F
from django.utils import timezone

from experiments.models import Cluster, State, Trial

LATEST: Final = 200
"""Newest finished trials of the clusters, and of the unfinished experiments, that the medians use."""

Resources = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outlook:
    """The forecast of an experiment; times are None if unknown.

    ``ahead``: the experiments before it, each with its number of unfinished trials.
    """

    starts_in_s: float | None = None
    """Seconds until its next waiting trial starts."""
    left_s: float | None = None
    """Seconds until its last trial ends, including trials of others in between."""
    ahead: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Lengths:
    """Median trial seconds by (cluster, configuration hash) and (cluster, workload)."""

    same: Mapping[tuple[int, str], float]
    alike: Mapping[tuple[int, str], float]

    def left_s(self, trial: Trial, now: datetime) -> float | None:
        """Return the seconds left of a running trial; 0 beyond the median.

        A start in the future (the clock was set back) counts as now.
        """
        length_s = self.of(trial)
        return None if length_s is None else max(length_s - max(_seconds(trial.preparing_at, now), 0.0), 0.0)

    def of(self, trial: Trial) -> float | None:
        """Return the median for trials like this one."""
        cluster_id = trial.cluster_id or 0
        alike_s = self.alike.get((cluster_id, trial.experiment.workload))
        return self.same.get((cluster_id, trial.configuration.hash), alike_s)

    def total_s(self, row: Mapping[str, Any], counts: Mapping[str, int]) -> float | None:
        """Return the seconds of all waiting trials; ``known`` counts known configurations."""
        alike_s = self.alike.get((row["cluster_id"], row["workload"]))
        if alike_s is None:
            return None
        same = {digest: count for digest, count in counts.items() if (row["cluster_id"], digest) in self.same}
        same_s = sum(count * self.same[row["cluster_id"], digest] for digest, count in same.items())
        return float(same_s + (row["count"] - sum(same.values())) * alike_s)


@dataclass(slots=True)
class _Queue:
    """The queue of one set of hosts: busy seconds, and experiments per project."""

    busy_s: float | None = 0.0
    running: dict[int, int] = field(default_factory=dict)
    projects: dict[int, list[Mapping[str, Any]]] = field(default_factory=dict)

    def outlook(self, row: Mapping[str, Any], lasting: Mapping[int, float | None]) -> Outlook:
        """Return the forecast of an experiment; ``lasting`` has seconds by experiment."""
        experiments = self.projects[row["project_id"]]
        before = experiments[: experiments.index(row)]
        first_s = _sum(*(lasting[other["experiment_id"]] for other in before))
        ahead = {other["experiment_id"]: other["count"] for other in before}
        ahead |= {
            earlier["experiment_id"]: _trials_before(row, earlier, lasting) for earlier in self._served_before(row)
        }
        for experiment_id, count in self.running.items():
            ahead[experiment_id] = ahead.get(experiment_id, 0) + count
        ahead.pop(row["experiment_id"], None)
        last_s = _sum(first_s, lasting[row["experiment_id"]])
        return Outlook(self._reached_s(row, first_s, lasting), self._reached_s(row, last_s, lasting), ahead)

    def _served_before(self, row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Return the first experiments of projects that precede: less use, or older."""
        first = self.projects[row["project_id"]][0]
        others = [experiments[0] for experiments in self.projects.values() if experiments[0] is not first]
        return [other for other in others if _turn(other) < _turn(first)]

    def _reached_s(
        self, row: Mapping[str, Any], work_s: float | None, lasting: Mapping[int, float | None]
    ) -> float | None:
        """Return the seconds until the project has had ``work_s``.

        Other projects meanwhile get what makes their use equal, as far as they need it.
        """
        reached = _sum(self.busy_s, work_s)
        for project_id, rows in self.projects.items():
            share_s = None if work_s is None else work_s + row["used_s"] - rows[0]["used_s"]
            if project_id == row["project_id"] or (share_s is not None and share_s <= 0):
                continue
            needed = _sum(*(lasting[other["experiment_id"]] for other in rows))
            reached = _sum(reached, None if needed is None or share_s is None else min(needed, share_s))
        return reached


def _turn(row: Mapping[str, Any]) -> tuple[float, int]:
    return row["used_s"], row["experiment_id"]


def _trials_before(row: Mapping[str, Any], other: Mapping[str, Any], lasting: Mapping[int, float | None]) -> int:
    """Return the trials of another project that start first; all if unknown."""
    count, owed_s, all_s = int(other["count"]), row["used_s"] - other["used_s"], lasting[other["experiment_id"]]
    if owed_s <= 0:
        return 1
    return count if not all_s else min(count, math.ceil(owed_s * count / all_s))


def outlooks(rows: Sequence[Mapping[str, Any]], running: Sequence[Trial]) -> dict[int, Outlook]:
    """Return the forecast of experiments in ``rows`` and ``running``; three queries.

    Clusters with shared hosts take turns; so do projects by recent use. The experiments of each follow in order after the running trials.
    """
    clusters = Cluster.objects.in_bulk({row["cluster_id"] for row in rows} | {trial.cluster_id for trial in running})
    unfinished = {row["experiment_id"] for row in rows} | {trial.experiment_id for trial in running}
    lengths, now = _lengths(clusters, unfinished), timezone.now()
    counts = _of_known_configurations(rows, lengths)
    queues: dict[Resources, _Queue] = {}
    by_experiment: dict[int, Outlook] = {}
    for trial in running:
        queue, left_s = queues.setdefault(_resources(clusters, trial.cluster_id), _Queue()), lengths.left_s(trial, now)
        queue.busy_s = _sum(queue.busy_s, left_s)
        queue.running[trial.experiment_id] = 1
        by_experiment[trial.experiment_id] = Outlook(left_s=left_s)
    for row in rows:
        if _starts(row):
            queue = queues.setdefault(_resources(clusters, row["cluster_id"]), _Queue())
            queue.projects.setdefault(row["project_id"], []).append(row)
    lasting = {row["experiment_id"]: lengths.total_s(row, counts.get(row["experiment_id"], {})) for row in rows}
    for row in rows:
        hosts = _resources(clusters, row["cluster_id"])
        by_experiment[row["experiment_id"]] = queues[hosts].outlook(row, lasting) if _starts(row) else Outlook()
    return by_experiment


def _starts(row: Mapping[str, Any]) -> bool:
    return row["cluster_enabled"] and row["used_s"] is not None


def length_of(trial: Trial) -> float | None:
    """Return the recent median seconds of trials like this one, or None."""
    if trial.cluster is None:
        return None
    return _lengths({trial.cluster.pk: trial.cluster}, {trial.experiment_id}).of(trial)


def _lengths(clusters: Mapping[int, Cluster], experiments: Set[int]) -> _Lengths:
    columns = ("pk", "cluster_id", "configuration__hash", "experiment__workload", "preparing_at", "ended_at")
    # Without trials during which the clock was set back.
    ended = Trial.objects.filter(state=State.FINISHED, cluster__in=clusters, ended_at__gte=F("preparing_at"))
    latest = ended.order_by("-ended_at").values_list(*columns)
    of_experiments = latest.filter(experiment__in=experiments)
    same: dict[tuple[int, str], list[float]] = {}
    alike: dict[tuple[int, str], list[float]] = {}
    for _, cluster_id, digest, workload, began, end in latest[:LATEST].union(of_experiments[:LATEST]):
        for lengths, key in ((same, digest), (alike, workload)):
            lengths.setdefault((cluster_id, key), []).append(_seconds(began, end))
    return _Lengths(
        {key: median(values) for key, values in same.items()}, {key: median(values) for key, values in alike.items()}
    )


def _of_known_configurations(rows: Sequence[Mapping[str, Any]], lengths: _Lengths) -> dict[int, dict[str, int]]:
    """Return waiting trials by experiment and known configuration hash."""
    waiting = Trial.objects.filter(
        state=State.QUEUED,
        experiment__in=[row["experiment_id"] for row in rows],
        configuration__hash__in={digest for _, digest in lengths.same},
    )
    counts: dict[int, dict[str, int]] = {}
    columns = ("experiment_id", "configuration__hash")
    for experiment_id, digest, count in waiting.values_list(*columns).annotate(count=Count("pk")).order_by():
        counts.setdefault(experiment_id, {})[digest] = count
    return counts


def _resources(clusters: Mapping[int, Cluster], cluster_id: int | None) -> Resources:
    cluster = clusters.get(cluster_id or 0)
    return tuple(cluster.resources()) if cluster is not None else ()


def _seconds(begin: datetime | None, end: datetime | None) -> float:
    return (end - begin).total_seconds() if begin is not None and end is not None else 0.0


def _sum(*seconds: float | None) -> float | None:
    """Return the sum; None if one of them is unknown."""
    finite = [value for value in seconds if value is not None]
    return sum(finite) if len(finite) == len(seconds) else None
