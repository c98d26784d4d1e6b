"""Rows for the tests of this package, created by the models' methods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model

from experiments import files
from experiments.library import load_defaults
from experiments.models import Artifact, Cluster, Experiment, Membership, Prediction, Project, Trial, TrialResult
from tests.experiments.specifications import specification

RESULT = TrialResult(
    measurements={"all": {"elapsed_s": 1.5, "packets": 1200.0}, "mpi": {"packets": 1000.0}},
    not_available={"retransmissions": "the capture has no TCP"},
    trust="good",
    environment={"kernel": "6.1"},
    tables={"MPI task timing breakdown": [{"section": "Pair", "mean_s": 0.5}]},
)


def experiment(
    *, project: Project | None = None, owner: Any = None, slug: str | None = None, **changes: Any
) -> Experiment:
    """Return a submitted experiment, by default two configurations of two trials."""
    default = load_defaults()
    return Experiment.submit(specification(**changes), project=project or default, owner=owner, slug=slug)


def person(name: str, role: str | None = None, project: Project | None = None, **fields: Any) -> Any:
    """Return a user with a role, if given, in ``project`` or the default one."""
    user = get_user_model().objects.create_user(name, password="secret", **fields)
    if role is not None:
        Membership.objects.create(user=user, project=project or load_defaults(), role=role)
    return user


def claimed(worker: str = "host:1:1") -> Trial:
    """Return the next trial of the test-bed, claimed."""
    trial = Trial.claim_next(Cluster.objects.get(slug="testbed"), worker)
    assert trial is not None
    return trial


def running(worker: str = "host:1:1") -> Trial:
    trial = claimed(worker)
    trial.start_running(command=["mpirun", "lmp"], conditions={"hosts": ["n1"]})
    return trial


def analysing(worker: str = "host:1:1") -> Trial:
    trial = running(worker)
    trial.start_analysing()
    return trial


def finished(result: TrialResult = RESULT) -> Trial:
    trial = analysing()
    trial.finish(result)
    return trial


def prediction(of: Experiment, **changes: Any) -> Prediction:
    """Return a stored prediction without evidence."""
    fields = {"metric": "elapsed_s", "hosts": 2, "delay_s": 1e-3, "rate_bps": 1e9, "value_s": 2.0, "low_s": 1.8}
    rest = {"high_s": 2.2, "level": 0.9, "extended": False, "evidence": [], "evidence_hash": "0" * 64, "version": 1}
    return Prediction.objects.create(experiment=of, cluster=of.cluster, **{**fields, **rest, **changes})


def stored_file(trial: Trial, name: str = "stdout.txt", content: bytes = b"hello\n", kind: str = "stdout") -> Artifact:
    """Return an unsaved artifact for a real file of the trial, or in the bucket."""
    file = Path(settings.VAR) / "trials" / str(trial.pk) / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    artifact = Artifact.describe(trial.pk, kind, file)
    files.deliver(trial, [artifact])
    files.forget_delivered(trial)
    return artifact


def store_again(artifact: Artifact, content: bytes) -> None:
    """Replace the content of an artifact's file."""
    artifact.file.write_bytes(content)
    left = Artifact.describe(artifact.trial_id, artifact.kind, artifact.file)
    artifact.size_bytes, artifact.sha256 = left.size_bytes, left.sha256
    artifact.save()
