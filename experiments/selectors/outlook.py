"""When the experiments that wait for their hosts will start and end, from how long trials held their hosts lately."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median
from typing import Any, Final

from django.db.models import Count, F
from django.utils import timezone

from experiments.models import Cluster, State, Trial

LATEST: Final = 200
"""So many finished trials of the clusters, and so many of the unfinished experiments themselves, tell how long one takes."""

Place = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outlook:
    """What lies before an unfinished experiment; the times are None where nothing tells, and where its cluster is switched off.

    ``ahead`` are the other experiments whose turn comes first, each with its trials that run or wait.
    """

    starts_in_s: float | None = None
    """Seconds until its next waiting trial starts."""
    left_s: float | None = None
    """Seconds until its last trial ends, the turns of others in between included."""
    ahead: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Lengths:
    """Median seconds that a trial held its hosts, by (cluster, hash of the configuration) and by (cluster, workload)."""

    same: Mapping[tuple[int, str], float]
    alike: Mapping[tuple[int, str], float]

    def left_s(self, trial: Trial, now: datetime) -> float | None:
        """What is left of a running trial; one that takes longer than its like is about to end.

        One that began in the future, by a clock that was set back since, has as much left as a new one.
        """
        cluster_id = trial.cluster_id or 0
        length_s = self.same.get((cluster_id, trial.configuration.hash))
        if length_s is None:
            length_s = self.alike.get((cluster_id, trial.experiment.workload))
        return None if length_s is None else max(length_s - max(_seconds(trial.preparing_at, now), 0.0), 0.0)

    def total_s(self, row: Mapping[str, Any], known: Mapping[str, int]) -> float | None:
        """All waiting trials of an experiment; ``known`` counts those of configurations that ended here before."""
        alike_s = self.alike.get((row["cluster_id"], row["workload"]))
        if alike_s is None:
            return None
        same = {digest: count for digest, count in known.items() if (row["cluster_id"], digest) in self.same}
        same_s = sum(count * self.same[row["cluster_id"], digest] for digest, count in same.items())
        return float(same_s + (row["count"] - sum(same.values())) * alike_s)


def outlooks(rows: Sequence[Mapping[str, Any]], running: Sequence[Trial]) -> dict[int, Outlook]:
    """Return the outlook of every experiment among ``rows`` (those of ``selectors.waiting``) and ``running`` trials; three queries.

    Clusters that share hosts take turns. Experiments go in the order of the queue, each after all trials before it, on top
    of what is left of the running ones.
    """
    clusters = Cluster.objects.in_bulk({row["cluster_id"] for row in rows} | {trial.cluster_id for trial in running})
    unfinished = {row["experiment_id"] for row in rows} | {trial.experiment_id for trial in running}
    lengths, now = _lengths(clusters, unfinished), timezone.now()
    known = _of_known_configurations(rows, lengths)
    busy_s: dict[Place, float | None] = {}
    turns: dict[Place, dict[int, int]] = {}
    by_experiment: dict[int, Outlook] = {}
    for trial in running:
        place, left_s = _place(clusters, trial.cluster_id), lengths.left_s(trial, now)
        busy_s[place] = _sum(busy_s.get(place, 0.0), left_s)
        turns.setdefault(place, {})[trial.experiment_id] = 1
        by_experiment[trial.experiment_id] = Outlook(left_s=left_s)
    for row in rows:
        place, experiment_id = _place(clusters, row["cluster_id"]), row["experiment_id"]
        if not row["cluster_enabled"]:
            by_experiment[experiment_id] = Outlook()
            continue
        before, turn = busy_s.get(place, 0.0), turns.setdefault(place, {})
        busy_s[place] = _sum(before, lengths.total_s(row, known.get(experiment_id, {})))
        ahead = {other: count for other, count in turn.items() if other != experiment_id}
        by_experiment[experiment_id] = Outlook(before, busy_s[place], ahead)
        turn[experiment_id] = turn.get(experiment_id, 0) + row["count"]
    return by_experiment


def _lengths(clusters: Mapping[int, Cluster], experiments: Set[int]) -> _Lengths:
    columns = ("pk", "cluster_id", "configuration__hash", "experiment__workload", "preparing_at", "ended_at")
    # Where the clock was set back meanwhile nobody knows how long a trial took.
    ended = Trial.objects.filter(state=State.FINISHED, cluster__in=clusters, ended_at__gte=F("preparing_at"))
    latest = ended.order_by("-ended_at").values_list(*columns)
    own = latest.filter(experiment__in=experiments)
    same: dict[tuple[int, str], list[float]] = {}
    alike: dict[tuple[int, str], list[float]] = {}
    for _, cluster_id, digest, workload, began, end in latest[:LATEST].union(own[:LATEST]):
        for lengths, key in ((same, digest), (alike, workload)):
            lengths.setdefault((cluster_id, key), []).append(_seconds(began, end))
    return _Lengths(
        {key: median(values) for key, values in same.items()}, {key: median(values) for key, values in alike.items()}
    )


def _of_known_configurations(rows: Sequence[Mapping[str, Any]], lengths: _Lengths) -> dict[int, dict[str, int]]:
    """Experiment -> hash of the configuration -> waiting trials; the rest of a long queue is not even read."""
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


def _place(clusters: Mapping[int, Cluster], cluster_id: int | None) -> Place:
    cluster = clusters.get(cluster_id or 0)
    return tuple(cluster.resources()) if cluster is not None else ()


def _seconds(begin: datetime | None, end: datetime | None) -> float:
    return (end - begin).total_seconds() if begin is not None and end is not None else 0.0


def _sum(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first + second
