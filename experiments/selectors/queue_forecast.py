"""Queue forecast: start and end of experiments, from the expected times of trials."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Final, Self

from django.db.models import Count
from django.utils import timezone

from experiments.models import Cluster, Configuration, State, Trial
from experiments.selectors.trial_times import TrialTimes

MOST_ESTIMATED: Final = 32
"""Configurations without past trials that are estimated for an experiment; the others count as their mean."""

Resources = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outlook:
    """The forecast of an experiment; times are None if unknown."""

    starts_in_s: float | None = None
    """Seconds until its next waiting trial starts."""
    left_s: float | None = None
    """Seconds until its last trial ends, including trials of others in between."""
    read_ahead: Callable[[], Mapping[int, int]] = field(default=dict, compare=False, repr=False)

    @property
    def ahead(self) -> Mapping[int, int]:
        """Return the experiments before it, each with its number of unfinished trials.

        Read for one experiment: those of a long queue together have the square of its length.
        """
        return self.read_ahead()


@dataclass(frozen=True, slots=True)
class _Lengths:
    """Expected seconds for which trials hold their hosts, as the preview shows them."""

    times: TrialTimes
    waiting: Mapping[int, Mapping[tuple[int, str], int]]
    """Waiting trials of each experiment by key and hash of their configuration."""
    parameters: Mapping[int, Mapping[str, Any]]
    """Parameters of configurations without past trials by key, at most ``MOST_ESTIMATED`` of an experiment."""

    @classmethod
    def read(cls, rows: Sequence[Mapping[str, Any]], running: Sequence[Trial]) -> Self:
        """Read the past of waiting and running trials."""
        waiting = _waiting_configurations(rows)
        configurations = {(row["cluster_id"], row["workload"], digest)
                          for row in rows for _, digest in waiting.get(row["experiment_id"], ())}  # fmt: skip
        configurations |= {(t.cluster_id or 0, t.experiment.workload, t.configuration.hash) for t in running}
        times = TrialTimes.of(configurations)
        unknown = [
            key
            for row in rows
            for key in _spread(
                [key for key, digest in waiting.get(row["experiment_id"], ())
                 if (row["cluster_id"], digest) not in times.measured]
            )
            if (row["cluster_id"], row["workload"]) in times.past
        ]  # fmt: skip
        parameters = Configuration.objects.filter(pk__in=unknown).values_list("pk", "parameters") if unknown else ()
        return cls(times, waiting, dict(parameters))

    def left_s(self, trial: Trial, now: datetime) -> float | None:
        """Return the seconds left of a running trial; 0 beyond the expected ones.

        A start in the future (the clock was set back) counts as now.
        """
        length_s = self.of(trial)
        return None if length_s is None else max(length_s - max(_seconds(trial.preparing_at, now), 0.0), 0.0)

    def of(self, trial: Trial) -> float | None:
        """Return the expected seconds of a trial; None without past trials."""
        configuration = trial.configuration
        return self._held_s(
            trial.cluster_id or 0, trial.experiment.workload, configuration.hash, configuration.parameters
        )

    def total_s(self, row: Mapping[str, Any]) -> float | None:
        """Return the expected seconds of all waiting trials of an experiment."""
        cluster, workload = row["cluster_id"], row["workload"]
        known_s, estimated, unknown = 0.0, list[tuple[float, int]](), 0
        for (key, digest), count in self.waiting.get(row["experiment_id"], {}).items():
            measured = self.times.measured.get((cluster, digest))
            if measured is not None:
                known_s += count * measured.held_s
                continue
            unknown += count
            if key in self.parameters:
                held_s = self._held_s(cluster, workload, digest, self.parameters[key])
                estimated += [] if held_s is None else [(held_s, count)]
        if not unknown:
            return known_s
        weight = sum(count for _, count in estimated)
        return known_s + unknown * sum(held_s * count for held_s, count in estimated) / weight if weight else None

    def _held_s(self, cluster: int, workload: str, digest: str, parameters: Mapping[str, Any]) -> float | None:
        try:
            estimate = self.times.estimate(cluster, workload, digest, parameters)
        except (KeyError, ValueError):  # a workload, or parameters of it, that no longer exist
            return None
        return estimate.held_s if estimate.past_trials else None


def _spread(keys: Sequence[int]) -> Sequence[int]:
    """Return at most ``MOST_ESTIMATED`` of the keys, evenly spread."""
    return sorted(keys)[:: max(1, math.ceil(len(keys) / MOST_ESTIMATED))]


@dataclass(slots=True)
class _Queue:
    """The queue of one set of hosts: busy seconds, and experiments per project."""

    busy_s: float | None = 0.0
    running: dict[int, int] = field(default_factory=dict)
    projects: dict[int, list[Mapping[str, Any]]] = field(default_factory=dict)

    def outlooks(self, lasting: Mapping[int, float | None]) -> Iterator[tuple[int, Outlook]]:
        """Yield the forecast of each experiment; ``lasting`` has seconds by experiment.

        In time that grows with the queue: the header of every page reads them.
        """
        needed = {project_id: _sum(*(lasting[row["experiment_id"]] for row in rows))
                  for project_id, rows in self.projects.items()}  # fmt: skip
        for rows in self.projects.values():
            first_s: float | None = 0.0
            for position, row in enumerate(rows):
                last_s = _sum(first_s, lasting[row["experiment_id"]])
                reached = self._reached_s(row, first_s, needed), self._reached_s(row, last_s, needed)
                yield row["experiment_id"], Outlook(*reached, partial(self._ahead, row, position, lasting))
                first_s = last_s

    def _ahead(self, row: Mapping[str, Any], position: int, lasting: Mapping[int, float | None]) -> Mapping[int, int]:
        before = self.projects[row["project_id"]][:position]
        ahead = {other["experiment_id"]: int(other["count"]) for other in before}
        ahead |= {
            earlier["experiment_id"]: _trials_before(row, earlier, lasting) for earlier in self._served_before(row)
        }
        for experiment_id, count in self.running.items():
            ahead[experiment_id] = ahead.get(experiment_id, 0) + count
        ahead.pop(row["experiment_id"], None)
        return ahead

    def _served_before(self, row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Return the first experiments of projects that precede: less use, or older."""
        first = self.projects[row["project_id"]][0]
        others = [experiments[0] for experiments in self.projects.values() if experiments[0] is not first]
        return [other for other in others if _turn(other) < _turn(first)]

    def _reached_s(
        self, row: Mapping[str, Any], work_s: float | None, needed: Mapping[int, float | None]
    ) -> float | None:
        """Return the seconds until the project has had ``work_s``.

        Other projects meanwhile get what makes their use equal, as far as they need it (``needed``).
        """
        reached = _sum(self.busy_s, work_s)
        for project_id, rows in self.projects.items():
            share_s = None if work_s is None else work_s + row["used_s"] - rows[0]["used_s"]
            if project_id == row["project_id"] or (share_s is not None and share_s <= 0):
                continue
            needed_s = needed[project_id]
            reached = _sum(reached, None if needed_s is None or share_s is None else min(needed_s, share_s))
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
    """Return the forecast of experiments in ``rows`` and ``running``.

    At most five queries. Clusters with equal hosts take turns; so do projects by recent use. The experiments of each follow in
    order after the running trials.
    """
    clusters = Cluster.objects.in_bulk({row["cluster_id"] for row in rows} | {trial.cluster_id for trial in running})
    lengths, now = _Lengths.read(rows, running), timezone.now()
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
    lasting = {row["experiment_id"]: lengths.total_s(row) for row in rows}
    forecasts = {hosts: dict(queue.outlooks(lasting)) for hosts, queue in queues.items()}
    for row in rows:
        of_hosts = forecasts[_resources(clusters, row["cluster_id"])] if _starts(row) else {}
        by_experiment[row["experiment_id"]] = of_hosts.get(row["experiment_id"], Outlook())
    return by_experiment


def _starts(row: Mapping[str, Any]) -> bool:
    return row["cluster_enabled"] and row["used_s"] is not None


def length_of(trial: Trial) -> float | None:
    """Return the expected seconds of a trial, or None without past trials like it."""
    return None if trial.cluster is None else _Lengths.read([], [trial]).of(trial)


def _waiting_configurations(rows: Sequence[Mapping[str, Any]]) -> dict[int, dict[tuple[int, str], int]]:
    """Count waiting trials by experiment, and by configuration (key and hash)."""
    if not rows:
        return {}
    waiting = Trial.objects.filter(state=State.QUEUED, experiment__in=[row["experiment_id"] for row in rows])
    counts: dict[int, dict[tuple[int, str], int]] = {}
    columns = ("experiment_id", "configuration_id", "configuration__hash")
    for experiment_id, key, digest, count in waiting.values_list(*columns).annotate(count=Count("pk")).order_by():
        counts.setdefault(experiment_id, {})[key, digest] = count
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
