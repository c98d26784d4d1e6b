"""Rows of the repository as the records of a bundle."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

from django.db.models import QuerySet

from experiments import store
from experiments.exchange.records import (
    EXPERIMENT_FIELDS,
    OVER,
    TRIAL_FIELDS,
    ClusterRecord,
    ConfigurationRecord,
    ExperimentRecord,
    FileRecord,
    RoundRecord,
    TrialRecord,
    VersionRecord,
    trial_uid,
)
from experiments.models import Artifact, Cluster, Experiment, Trial

_AT_ONCE: Final = 100


def over(trials: QuerySet[Trial]) -> QuerySet[Trial]:
    """Return the trials that have ended."""
    return trials.filter(state__in=OVER).order_by("position", "attempt", "pk")


def experiment_record(experiment: Experiment, clusters: list[Cluster], directories: list[str]) -> ExperimentRecord:
    """Return the record of an experiment, whose trials are in ``directories``."""
    same: dict[str, Any] = {name: getattr(experiment, name) for name in EXPERIMENT_FIELDS}
    return ExperimentRecord(
        cluster=experiment.cluster.slug if experiment.cluster else None,
        clusters=[_cluster_record(cluster) for cluster in clusters],
        versions=[VersionRecord.model_validate(row, from_attributes=True) for row in experiment.versions.all()],
        configurations=[
            ConfigurationRecord.model_validate(row, from_attributes=True) for row in experiment.configurations.all()
        ],
        rounds=[RoundRecord.model_validate(row, from_attributes=True) for row in experiment.rounds.exclude(outcome="")],
        owner=experiment.owner.get_username() if experiment.owner else experiment.origin.get("owner", ""),
        trials=directories,
        **same,
    )


def clusters_of(experiment: Experiment, trials: QuerySet[Trial]) -> list[Cluster]:
    """Return the clusters that an experiment is for and that these trials ran on."""
    keys = {experiment.cluster_id, *trials.order_by().values_list("cluster_id", flat=True).distinct()}
    return list(Cluster.objects.filter(pk__in=[key for key in keys if key is not None]).order_by("slug"))


def _cluster_record(cluster: Cluster) -> ClusterRecord:
    # The number of hosts bounds recommended trials; the access to them is not exported.
    hosts = cluster.hosts_to_suggest
    return ClusterRecord(
        slug=cluster.slug,
        name=cluster.name,
        kind=cluster.kind,
        facts={**cluster.facts, **({"hosts": hosts} if hosts is not None else {})},
        elsewhere=cluster.elsewhere,
    )


def with_artifacts(trials: QuerySet[Trial]) -> Iterator[tuple[Trial, dict[str, dict[str, float]], list[Artifact]]]:
    """Yield trials with measurements and artifacts, in pieces of bounded memory."""
    rows = trials.select_related("configuration", "cluster", "environment", "experiment")
    for trial in rows.prefetch_related("measurements", "artifacts").iterator(chunk_size=_AT_ONCE):
        measured: dict[str, dict[str, float]] = defaultdict(dict)
        for row in sorted(trial.measurements.all(), key=lambda row: row.pk):
            measured[row.scope][row.metric] = row.value
        yield trial, dict(measured), list(trial.artifacts.all())


def trial_record(
    trial: Trial, measured: dict[str, dict[str, float]], environment: str | None, files: list[FileRecord]
) -> TrialRecord:
    """Return the record of a trial; ``environment`` is the hash of its exported facts."""
    same: dict[str, Any] = {name: getattr(trial, name) for name in TRIAL_FIELDS}
    return TrialRecord(
        uid=uid_of(trial),
        configuration=trial.configuration.hash,
        cluster=trial.cluster.slug if trial.cluster else None,
        environment=environment,
        measurements=measured,  # type: ignore[arg-type]  # scopes are checked by the record
        files=files,
        **same,
    )


def uid_of(trial: Trial) -> Any:
    """Return the identity of a trial in every installation."""
    return trial_uid(trial.experiment.uid, trial.configuration.hash, trial.kind, trial.repetition, trial.attempt)


def path_within(artifact: Artifact, trial: Trial) -> str:
    """Return the path of an artifact in the directory of its trial."""
    return store.place_within(artifact.path, trial.pk)
