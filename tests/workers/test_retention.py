"""Captures go after their retention period, and nothing else does."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.contrib.sessions.models import Session
from django.utils import timezone

from experiments.files import trial_directory
from experiments.library import load_defaults
from experiments.models import Artifact, Experiment, State, Trial
from experiments.specification import parse
from workers.retention import remove_old_captures
from workers.tasks import remove_old_captures as apply_retention


@pytest.fixture
def capture(db: None, session_directory: Path) -> Artifact:
    """The stored capture of a finished trial, ten days old."""
    experiment = Experiment.submit(parse({"name": "r", "workload": "water", "repetitions": 1}), project=load_defaults())
    trial = experiment.trials.get()
    Trial.objects.filter(pk=trial.pk).update(state=State.FINISHED)
    directory = trial_directory(trial)
    directory.mkdir(parents=True, exist_ok=True)
    for name in ("capture.pcapng.zst", "stdout.txt"):
        (directory / name).write_bytes(b"kept")
    for kind, name in (("capture", "capture.pcapng.zst"), ("stdout", "stdout.txt")):
        Artifact.describe(trial.pk, kind, directory / name).save()
    Artifact.objects.update(created_at=timezone.now() - timedelta(days=10))
    return Artifact.objects.get(kind="capture")


def test_it_removes_an_old_capture_and_notes_when(capture: Artifact, settings: LazySettings) -> None:
    settings.CAPTURE_RETENTION_DAYS = 9
    assert remove_old_captures() == 1
    capture.refresh_from_db()
    assert capture.removed_at is not None
    assert not capture.file.exists()
    assert Artifact.objects.get(kind="stdout").file.exists()
    assert remove_old_captures() == 0


@pytest.mark.parametrize("days", [0, 11])
def test_it_keeps_what_is_young_enough_or_kept_for_ever(capture: Artifact, settings: LazySettings, days: int) -> None:
    settings.CAPTURE_RETENTION_DAYS = days
    assert remove_old_captures() == 0
    assert capture.file.exists()


def test_expired_sessions_go(db: None) -> None:
    now = timezone.now()
    for key, days in (("over", -1), ("open", 1)):
        Session.objects.create(session_key=key, expire_date=now + timedelta(days=days))
    apply_retention()
    assert [session.session_key for session in Session.objects.all()] == ["open"]
