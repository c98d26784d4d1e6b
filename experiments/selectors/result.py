"""An experiment as plain data: what ``script/run --json`` and REST hand out."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from experiments.models import Experiment, Kind, Measurement, Trial


def experiment_summary(experiment: Experiment) -> dict[str, Any]:
    """Return what an experiment is: names, version, specification and hash, source when it is published."""
    return {
        "slug": experiment.slug,
        "name": experiment.name,
        "workload": experiment.workload,
        "cluster": experiment.cluster.slug if experiment.cluster else None,
        "version": experiment.version,
        "specification": experiment.specification,
        "specification_hash": experiment.specification_hash,
        "published": experiment.published,
        "source": experiment.source,
        "created_at": experiment.created_at.isoformat(),
    }


def experiment_result(experiment: Experiment) -> dict[str, Any]:
    """Return an experiment with all its current trials and everything measured, in three queries."""
    trials = Trial.objects.current().filter(experiment=experiment).select_related("configuration", "environment")
    ordered = list(trials.order_by("position", "pk"))
    measured: dict[int, dict[str, dict[str, float]]] = defaultdict(lambda: {"all": {}, "mpi": {}})
    rows = Measurement.objects.filter(trial__in=[t.pk for t in ordered])
    for trial_id, scope, metric, value in rows.values_list("trial_id", "scope", "metric", "value"):
        measured[trial_id][scope][metric] = value
    return {
        "experiment": experiment_summary(experiment),
        "trials": [_trial(trial, measured[trial.pk]) for trial in ordered],
    }


def _trial(trial: Trial, measured: dict[str, dict[str, float]]) -> dict[str, Any]:
    return {
        "id": trial.pk,
        "state": trial.state,
        "warmup": trial.kind == Kind.WARMUP,
        "control": trial.kind == Kind.CONTROL,
        "repetition": trial.repetition,
        "attempt": trial.attempt,
        "parameters": trial.configuration.parameters,
        "configuration": trial.configuration.hash,
        "metrics": measured["all"],
        "mpi_metrics": measured["mpi"],
        "not_available": trial.not_available,
        "trust": trial.trust,
        "trust_reasons": trial.trust_reasons,
        "message": trial.message,
        "command": trial.command,
        "conditions": trial.conditions,
        "certificate": trial.certificate,
        "environment": trial.environment.hash if trial.environment else None,
        "started_at": trial.running_at.isoformat() if trial.running_at else None,
        "ended_at": trial.ended_at.isoformat() if trial.ended_at else None,
    }
