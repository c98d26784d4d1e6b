"""Differences of files and rows are found, and only orphans are removed."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings, settings
from django.core.management import CommandError, call_command
from django.db.models.functions import Now

from experiments import deletion
from experiments.models import Deleted, Trial
from tests.experiments import factories
from tests.experiments.common.deep_trees import nest
from workers import store

pytestmark = pytest.mark.django_db


def aged(path: Path) -> Path:
    """The same, as if it lay there since yesterday."""
    os.utime(path, (time.time() - 90_000,) * 2)
    return path


@pytest.fixture
def trial() -> Trial:
    """A finished trial with an intact file, the only one of this installation."""
    shutil.rmtree(Path(settings.VAR) / "trials", ignore_errors=True)
    factories.experiment()
    trial = factories.finished()
    factories.stored_file(trial).save()
    aged(Path(settings.VAR) / "trials" / str(trial.pk))
    return trial


def said(*options: str) -> str:
    out = io.StringIO()
    try:
        call_command("store", "check", *options, stdout=out)
    except CommandError as error:
        out.write(str(error))
    return out.getvalue()


def test_what_agrees_is_said_to_agree(trial: Trial) -> None:
    assert said("--hashes") == "files and database match\n"


def test_a_file_that_is_gone_and_one_that_was_changed_are_named(trial: Trial) -> None:
    gone = factories.stored_file(trial, "gone.txt")
    gone.save()
    gone.file.unlink()
    stored = trial.artifacts.get(name="stdout.txt")
    stored.file.write_bytes(b"HELLO\n")
    assert [artifact.name for artifact in store.check().missing] == ["gone.txt"]
    assert not store.check().changed
    answer = said("--hashes")
    assert f"missing: {gone.path} (trial {trial.pk})" in answer
    assert f"changed: {stored.path} (trial {trial.pk})" in answer
    assert "files that differ from the database: 2" in answer
    stored.file.write_bytes(b"longer than before\n")
    assert [artifact.name for artifact in store.check().resized] == ["stdout.txt"]
    assert f"wrong size: {stored.path} (trial {trial.pk})" in said()


def test_only_orphans_are_removed(trial: Trial) -> None:
    trials = Path(settings.VAR) / "trials"
    expected = trials / str(trial.pk)
    waiting = trials / str(Trial.objects.filter(state="queued").first().pk)  # type: ignore[union-attr]
    stranger, leftover, link, fresh = trials / "999999", expected / "core", trials / "elsewhere", trials / "888888"
    for directory in (stranger, fresh, waiting):
        directory.mkdir()
        (directory / "stdout.txt").write_text("x")
    leftover.write_text("x")
    link.symlink_to("/etc")
    os.utime(link, (time.time() - 90_000,) * 2, follow_symlinks=False)
    for path in (stranger, waiting, expected):
        aged(path)
    aged(leftover)
    aged(expected)
    assert set(store.check().orphans) == {stranger, leftover, link}
    assert f"orphan: {stranger}" in said()
    assert stranger.exists(), "unasked it deletes nothing"
    answer = said("--delete-orphans")
    assert all(f"deleted: {path}\n" in answer for path in (leftover, link))
    assert f"orphan: {stranger}\nfiles that differ from the database: 1" in answer, "a file in it was written today"
    aged(stranger / "stdout.txt")
    aged(stranger)
    assert said("--delete-orphans") == f"deleted: {stranger}\nfiles and database match\n"
    assert not stranger.exists()
    assert not link.is_symlink()
    assert sorted(path.name for path in expected.iterdir()) == ["stdout.txt"]
    assert Path("/etc/passwd").is_file()
    assert (waiting / "stdout.txt").is_file()
    assert (fresh / "stdout.txt").is_file()


@pytest.fixture
def stuck() -> Iterator[Callable[[Path], Path]]:
    """Makes directories that cannot be removed: something is mounted in them."""
    mounted = []

    def make(directory: Path) -> Path:
        directory.mkdir(parents=True)
        subprocess.run(["mount", "-t", "tmpfs", "none", str(directory)], check=True)
        mounted.append(directory)
        return directory

    yield make
    for directory in mounted:
        subprocess.run(["umount", str(directory)], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_orphans_of_any_depth_are_removed_and_those_that_stay_are_still_listed(
    trial: Trial, stuck: Callable[[Path], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "SETTLED_S", -1.0)
    monkeypatch.setattr(store, "FORGOTTEN_S", -1.0)
    deep, remaining = (Path(settings.VAR) / "trials" / name for name in ("999998", "999999"))
    deep.mkdir()
    nest(deep, 1500)
    stuck(remaining / "busy")
    result = store.check()
    assert set(result.orphans) == {deep, remaining}
    assert store.delete_orphans(result) == [deep]
    assert result.orphans == [remaining]
    assert not deep.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_files_in_the_trash_are_removed_although_those_of_another_trial_stay(
    trial: Trial, stuck: Callable[[Path], Path], settings: LazySettings, django_capture_on_commit_callbacks: Any
) -> None:
    trials = Path(settings.VAR) / "trials"
    first, *_, last = (trials / str(key) for key in trial.experiment.trials.order_by("pk").values_list("pk", flat=True))
    stuck(first / "kept")
    last.mkdir(exist_ok=True)
    trial.experiment.trials.unfinished().update(state="cancelled")
    deletion.delete(trial.experiment, by=None)
    Deleted.objects.update(at=Now() - timedelta(days=10))
    settings.DELETED_DAYS = 7
    with django_capture_on_commit_callbacks(execute=True):
        assert deletion.forget_old() == 1
    assert first.exists()
    assert not last.exists()
