"""No room, no permission: the trial fails, later ones are unaffected."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from experiments.files import trial_directory
from experiments.models import Experiment, Lease, State, Trial
from tests.experiments import factories
from workers import tasks
from workers.trial import pipeline
from workers.trial.failure import storage_failure


@pytest.fixture
def small_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file system of 256 KiB for the trials of this test."""
    directory = tmp_path / "var"
    directory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(directory)], check=True, timeout=60)
    monkeypatch.setattr(settings, "VAR", directory)
    yield directory
    subprocess.run(["umount", "--lazy", str(directory)], check=True, timeout=60)


@pytest.fixture
def run_one(submit: Callable[..., Experiment], empty_redis: object) -> Iterator[Callable[[], Trial]]:
    def run() -> Trial:
        experiment = submit(parameters={"molecules": 64, "steps": 100})
        tasks.work(experiment.cluster_id)
        return experiment.trials.get()

    yield run
    pipeline.POOL.close()


def remount(directory: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", str(directory)], check=True, timeout=60)


def require_failed(trial: Trial, words: str) -> None:
    assert trial.state == State.FAILED, trial.message + trial.traceback
    assert words in trial.message
    assert "\n" not in trial.message.split("\n\nLast lines")[0]
    assert not trial.measurements.exists()
    assert not Lease.objects.exists()


def test_a_full_disk_is_reported_and_the_next_trial_runs(small_disk: Path, run_one: Callable[[], Trial]) -> None:
    filler = small_disk / "filler"
    with filler.open("wb") as stream:
        stream.write(bytes(250 * 1024))
    require_failed(run_one(), "No space left on device")
    filler.unlink()
    remount(small_disk, "size=64m")
    assert run_one().state == State.FINISHED


def test_a_capture_that_does_not_fit_is_reported_and_leaves_no_half_file(
    small_disk: Path, run_one: Callable[[], Trial]
) -> None:
    with (small_disk / "filler").open("wb") as stream:
        stream.write(bytes(200 * 1024))  # inputs and output fit, the packets do not
    trial = run_one()
    require_failed(trial, "No space left on device")
    assert not list(trial_directory(trial).glob("capture*"))


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EDQUOT, "Disk quota exceeded"),
        (errno.ENOSPC, "No space left on device"),
        (errno.EACCES, "Permission denied"),
    ],
)
def test_what_a_person_can_fix_is_reported_in_a_sentence(number: int, words: str) -> None:
    error = OSError(number, os.strerror(number), "/srv/trials/7/samples.json")
    assert storage_failure(error) == f"The results could not be stored: {words} at samples.json."
    assert storage_failure(OSError(errno.EIO, "Input/output error")) is None


def test_a_read_only_directory_is_reported_and_the_next_trial_runs(
    small_disk: Path, run_one: Callable[[], Trial]
) -> None:
    remount(small_disk, "ro")
    require_failed(run_one(), "Read-only file system")
    remount(small_disk, "rw,size=64m")
    assert run_one().state == State.FINISHED


def test_a_trial_waits_while_the_disk_has_too_little_room_and_runs_when_there_is_room(
    submit: Callable[..., Experiment], empty_redis: object, settings: Any
) -> None:
    experiment = submit(parameters={"molecules": 64, "steps": 100})
    settings.DISK_RESERVE_BYTES = 1 << 60
    tasks.work(experiment.cluster_id)
    trial = experiment.trials.get()
    assert (trial.state, trial.attempt, trial.running_at) == (State.QUEUED, 1, None)
    assert "free" in trial.message
    assert "required" in trial.message
    assert not Lease.objects.exists()
    settings.DISK_RESERVE_BYTES = 0
    tasks.work(experiment.cluster_id)
    pipeline.POOL.close()
    trial.refresh_from_db()
    assert (trial.state, trial.attempt) == (State.FINISHED, 1), trial.message


@pytest.mark.django_db
def test_a_worker_without_a_directory_starts_its_first_trial(settings: Any, tmp_path: Path) -> None:
    settings.VAR = tmp_path / "new" / "var"
    factories.experiment(slug="first")
    assert pipeline._lacking_room(Trial.objects.filter(experiment__slug="first").earliest("pk")) == ""


@pytest.mark.django_db
def test_the_required_room_grows_with_what_the_last_trials_stored(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.VAR.mkdir(parents=True, exist_ok=True)
    factories.experiment(slug="large")
    stored = factories.stored_file(factories.finished())
    stored.size_bytes = 100 << 20
    stored.save()
    waiting = Trial.objects.filter(experiment=stored.trial.experiment_id).first()
    assert waiting is not None
    usage = shutil.disk_usage(settings.VAR)
    for free, lacks in ((301 << 20, False), (299 << 20, True)):
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: usage._replace(free=free))
        assert bool(pipeline._lacking_room(waiting)) is lacks
    assert Experiment.objects.get(slug="large").trials.exists()
