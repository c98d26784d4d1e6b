"""Contents of a backup, refusals, and atomicity."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from collections import namedtuple
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.utils import timezone

from config.backup import backup, layout
from config.backup.dump import Programs, unescaped
from config.backup.errors import BackupError, ChangedBackup
from experiments.models import Artifact, Trial
from tests.experiments import factories

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def trial(monkeypatch: pytest.MonkeyPatch) -> Trial:
    """A finished trial with two artifacts, the only ones of the installation."""
    monkeypatch.setattr(backup, "SETTLE_S", 0.0)
    shutil.rmtree(Path(settings.VAR) / "trials", ignore_errors=True)
    factories.experiment()
    trial = factories.finished()
    factories.stored_file(trial).save()
    factories.stored_file(trial, "odd\nname\\.txt", b"more\n", kind="other").save()
    return trial


def make(backups: Path, **options: Any) -> Path:
    return backup.make(backups, report=lambda _: None, **options)


def test_the_next_one_shares_the_files_that_stayed_and_has_no_secret_unasked(trial: Trial, backups: Path) -> None:
    first, lines = make(backups), list[str]()
    second = backup.make(backups, report=lines.append)
    assert layout.complete_backups(backups) == [first, second]
    for name in ("stdout.txt", "odd\nname\\.txt"):
        path = Path("files") / "trials" / str(trial.pk) / name
        assert (first / path).samefile(second / path)
        assert not (second / path).samefile(Path(settings.VAR) / path.relative_to("files"))
    assert any("2 artifacts shared with the previous backup" in line for line in lines)
    checked = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=second, capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stderr
    secret = settings.SECRET_KEY.encode()
    assert not any(secret in file.read_bytes() for file in second.rglob("*") if file.is_file())
    assert secret in (make(backups, secrets=True) / "secrets" / "secret-key").read_bytes()


def test_a_shared_file_that_rotted_is_copied_anew(trial: Trial, backups: Path) -> None:
    path = Path("files") / "trials" / str(trial.pk) / "stdout.txt"
    first = make(backups)
    (first / path).chmod(0o600)
    (first / path).write_bytes(b"HELLO\n")
    assert (make(backups) / path).read_bytes() == b"hello\n"


def test_a_file_that_retention_takes_meanwhile_is_in_neither_database_nor_files(
    trial: Trial, backups: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = layout.copy_pieces

    def gone_at_that_moment(pieces: Iterable[bytes], target: Path) -> tuple[str, int]:
        if target.name == "stdout.txt":
            for artifact in trial.artifacts.filter(name=target.name, removed_at=None):
                artifact.file.unlink()
            trial.artifacts.filter(name=target.name).update(removed_at=timezone.now())
        return copy(pieces, target)

    monkeypatch.setattr(backup, "copy_pieces", gone_at_that_moment)
    lines: list[str] = []
    path = backup.make(backups, report=lines.append)
    assert "dumping the database again" in lines
    programs = Programs(connection.settings_dict, backup.server_major())
    [named] = programs.stored_files(path / layout.DATABASE)
    assert named.path.endswith("odd\nname\\.txt")
    assert not (path / "files" / "trials" / str(trial.pk) / "stdout.txt").exists()
    layout.verify(path, layout.About.read(path))


def test_a_damaged_file_prevents_it_unless_that_is_accepted(trial: Trial, backups: Path) -> None:
    damaged = trial.artifacts.get(name="stdout.txt")
    damaged.file.write_bytes(b"HELLO\n")
    with pytest.raises(BackupError, match=f"{damaged.path}: missing or changed"):
        make(backups)
    assert [path.name for path in backups.iterdir()] == [".lock"]
    path = make(backups, accept_damaged=True)
    assert layout.About.read(path).damaged == [damaged.path]
    assert (path / "files" / damaged.path).read_bytes() == b"HELLO\n"
    damaged.file.unlink()
    assert not (make(backups, accept_damaged=True) / "files" / damaged.path).exists()


def test_it_refuses_before_it_begins(
    trial: Trial, backups: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(BackupError, match="is inside the directory of trials"):
        make(Path(settings.VAR) / "trials" / "backups")
    (tmp_path / "file").write_text("")
    with pytest.raises(BackupError, match="cannot be written"):
        make(tmp_path / "file")
    backups.mkdir()
    with (backups / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(BackupError, match="another backup is running"):
            make(backups)
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(1, 1, 1000))
    with pytest.raises(BackupError, match=r"1.000.B free; the backup needs about"):
        make(backups)
    monkeypatch.setattr(backup, "server_major", lambda: 99)
    with pytest.raises(BackupError, match="install the package postgresql-client-99"):
        make(backups)


def test_what_a_killed_one_left_goes_and_was_never_whole(
    trial: Trial, backups: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (backups / ".part-1" / "files").mkdir(parents=True)
    with monkeypatch.context() as broken:
        broken.setattr(Programs, "read_through", lambda *_: (_ for _ in ()).throw(ChangedBackup("of a broken disk")))
        with pytest.raises(ChangedBackup):
            make(backups)
    assert [path.name for path in backups.iterdir()] == [".lock"]
    Artifact.objects.update(path="trials/../secret-key")
    with pytest.raises(BackupError, match="lists an artifact outside of trials"):
        make(backups)


@pytest.mark.parametrize(("copied", "meant"), [(r"a\\b\nc\td", "a\\b\nc\td"), ("plain", "plain")])
def test_it_reads_what_copy_escaped(copied: str, meant: str) -> None:
    assert unescaped(copied) == meant
