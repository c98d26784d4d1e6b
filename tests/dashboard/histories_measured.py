"""Histories: configurations of many days, with a step and without."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from experiments.models import Cluster, Experiment, Project, Trial, TrialResult
from tests.dashboard.laboratory import submitted

# Seconds of twelve trials: without a step, and with one after the sixth.
LEVEL = [2.0 * (1 + 0.002 * (n % 3)) for n in range(12)]
STEP = [value * (1.2 if n > 5 else 1.0) for n, value in enumerate(LEVEL)]


def measure(library: Project, person: User, name: str, seconds: Sequence[float], **changes: Any) -> Experiment:
    """An experiment on two hosts whose trials take these seconds, a day apart."""
    changes = {"name": name, "repetitions": len(seconds), "sweep": {"hosts": [2]}, **changes}
    experiment = submitted(library, person, **changes)
    cluster = Cluster.objects.get(slug="testbed")
    for number, value in enumerate(seconds):
        trial = Trial.claim_next(cluster, "tests:1:1")
        assert trial is not None
        trial.start_running(command=["mpirun"], conditions={})
        trial.start_analysing()
        trial.finish(TrialResult({"all": {"elapsed_s": value}}, {}, "good"))
        ended = timezone.now() - timedelta(days=len(seconds) - number)
        Trial.objects.filter(pk=trial.pk).update(ended_at=ended)
    connection.check_constraints()
    return experiment
