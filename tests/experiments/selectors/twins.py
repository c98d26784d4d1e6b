"""Experiments with ideal-network runs, stored as a worker does."""

from __future__ import annotations

from typing import Any, Final

from django.db import connection

from experiments.metrics import FROM_TWINS
from experiments.models import Cluster, Experiment, Kind, Project, Trial, TrialResult
from experiments.specification import parse

SPEC: Final[dict[str, Any]] = {
    "name": "twins",
    "workload": "pingpong",
    "sweep": {"hosts": [2]},
    "repetitions": 2,
    "ideal": True,
}


def submitted(project: Project, ideal_s: float = 5.0, *, ideal: bool = True) -> Experiment:
    """Return an experiment of two 10 s trials and an ideal-network run."""
    experiment = Experiment.submit(parse({**SPEC, "ideal": ideal}), project=project)
    while (trial := Trial.claim_next(Cluster.objects.get(slug="testbed"), "tests:1:1")) is not None:
        trial.start_running(command=["mpirun"], conditions={})
        trial.start_analysing()
        window = ideal_s if trial.kind == Kind.IDEAL else 10.0
        values = {"elapsed_s": window + 1, "mpi_window_s": window, "mpi_useful_max_rank_s": 4.0}
        trial.finish(TrialResult({"all": values}, dict.fromkeys(FROM_TWINS, "no twin"), "good"))
    committed()
    return experiment


def committed() -> None:
    """Run deferred triggers, as a commit does."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")
