"""Differences of files and rows are found, and only orphans are removed."""

from __future__ import annotations

import io
import os
import shutil
import time
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from experiments.models import Trial
from tests.experiments import factories
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
