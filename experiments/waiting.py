"""When the experiments that wait for their hosts will start, from how long trials took lately."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from statistics import median
from typing import Any, Final

from django.utils import timezone

from experiments.models import Cluster, State, Trial

LATEST: Final = 200
"""So many finished trials tell how long one takes."""

Lengths = Mapping[tuple[int, str], float]


def expected_starts(rows: Sequence[Mapping[str, Any]], running: Sequence[Trial]) -> dict[int, float | None]:
    """Return, per waiting experiment of ``selectors.waiting``, seconds until its next trial starts; None where nothing tells, and
    where the cluster is switched off.

    Clusters that share hosts take turns. Experiments go in the order of the queue, each after all trials before it, on top
    of what is left of the running ones; a trial that takes longer than its like is about to end.
    """
    clusters = Cluster.objects.in_bulk({row["cluster_id"] for row in rows} | {trial.cluster_id for trial in running})
    lengths, now = _lengths(clusters), timezone.now()
    busy_s: dict[tuple[str, ...], float | None] = {}
    for trial in running:
        place = _place(clusters, trial.cluster_id)
        length_s = lengths.get((trial.cluster_id or 0, trial.experiment.workload))
        left_s = None if length_s is None else max(length_s - _seconds(trial.preparing_at, now), 0.0)
        busy_s[place] = _sum(busy_s.get(place, 0.0), left_s)
    starts: dict[int, float | None] = {}
    for row in rows:
        place = _place(clusters, row["cluster_id"])
        if not row["cluster_enabled"]:
            starts[row["experiment_id"]] = None
            continue
        starts[row["experiment_id"]] = busy_s.setdefault(place, 0.0)
        length_s = lengths.get((row["cluster_id"], row["workload"]))
        busy_s[place] = _sum(busy_s[place], None if length_s is None else row["count"] * length_s)
    return starts


def _lengths(clusters: Mapping[int, Cluster]) -> Lengths:
    """(cluster, workload) -> median seconds that a trial held its hosts."""
    latest = Trial.objects.filter(state=State.FINISHED, cluster__in=clusters).order_by("-ended_at")
    found: dict[tuple[int, str], list[float]] = {}
    columns = ("cluster_id", "experiment__workload", "preparing_at", "ended_at")
    for cluster_id, workload, began, ended in latest.values_list(*columns)[:LATEST]:
        found.setdefault((cluster_id, workload), []).append(_seconds(began, ended))
    return {key: median(values) for key, values in found.items()}


def _place(clusters: Mapping[int, Cluster], cluster_id: int | None) -> tuple[str, ...]:
    cluster = clusters.get(cluster_id or 0)
    return tuple(cluster.resources()) if cluster is not None else ()


def _seconds(begin: datetime | None, end: datetime | None) -> float:
    return (end - begin).total_seconds() if begin is not None and end is not None else 0.0


def _sum(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first + second
