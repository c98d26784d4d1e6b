"""What a backup takes, what it refuses, and that it is whole or not there."""

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
from config.backup.errors import ChangedBackup, KeepingError
from experiments.models import Artifact, Trial
from tests.experiments import factories

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def trial(monkeypatch: pytest.MonkeyPatch) -> Trial:
    """A finished trial with two files, the only ones of this installation."""
    monkeypatch.setattr(backup, "SETTLE_S", 0.0)
    shutil.rmtree(Path(settings.VAR) / "trials", ignore_errors=True)
    factories.experiment()
    trial = factories.finished()
    factories.stored_file(trial).save()
    factories.stored_file(trial, "odd\nname\\.txt", b"more\n", kind="other").save()
    return trial


def make(kept: Path, **options: Any) -> Path:
    return backup.make(kept, tell=lambda _: None, **options)


def test_the_next_one_shares_the_files_that_stayed_and_has_no_secret_unasked(trial: Trial, kept: Path) -> None:
    first, told = make(kept), list[str]()
    second = backup.make(kept, tell=told.append)
    assert layout.whole_backups(kept) == [first, second]
    for name in ("stdout.txt", "odd\nname\\.txt"):
        path = Path("files") / "trials" / str(trial.pk) / name
        assert (first / path).samefile(second / path)
        assert not (second / path).samefile(Path(settings.VAR) / path.relative_to("files"))
    assert any("2 files shared with the backup before" in line for line in told)
    checked = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=second, capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stderr
    secret = settings.SECRET_KEY.encode()
    assert not any(secret in file.read_bytes() for file in second.rglob("*") if file.is_file())
    assert secret in (make(kept, secrets=True) / "secrets" / "secret-key").read_bytes()


def test_a_shared_file_that_rotted_is_copied_anew(trial: Trial, kept: Path) -> None:
    path = Path("files") / "trials" / str(trial.pk) / "stdout.txt"
    first = make(kept)
    (first / path).chmod(0o600)
    (first / path).write_bytes(b"HELLO\n")
    assert (make(kept) / path).read_bytes() == b"hello\n"


def test_a_file_that_retention_takes_meanwhile_is_in_neither_database_nor_files(
    trial: Trial, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = layout.copy_pieces

    def gone_at_that_moment(pieces: Iterable[bytes], target: Path) -> tuple[str, int]:
        if target.name == "stdout.txt":
            for artifact in trial.artifacts.filter(name=target.name, removed_at=None):
                artifact.file.unlink()
            trial.artifacts.filter(name=target.name).update(removed_at=timezone.now())
        return copy(pieces, target)

    monkeypatch.setattr(backup, "copy_pieces", gone_at_that_moment)
    told: list[str] = []
    place = backup.make(kept, tell=told.append)
    assert "dumping the database once more" in told
    programs = Programs(connection.settings_dict, backup.server_major())
    [named] = programs.stored_files(place / layout.DATABASE)
    assert named.path.endswith("odd\nname\\.txt")
    assert not (place / "files" / "trials" / str(trial.pk) / "stdout.txt").exists()
    layout.verify(place, layout.About.read(place))


def test_a_damaged_file_prevents_it_unless_that_is_accepted(trial: Trial, kept: Path) -> None:
    damaged = trial.artifacts.get(name="stdout.txt")
    damaged.file.write_bytes(b"HELLO\n")
    with pytest.raises(KeepingError, match=f"{damaged.path} is gone or not what its trial left"):
        make(kept)
    assert [path.name for path in kept.iterdir()] == [".lock"]
    place = make(kept, accept_damaged=True)
    assert layout.About.read(place).damaged == [damaged.path]
    assert (place / "files" / damaged.path).read_bytes() == b"HELLO\n"
    damaged.file.unlink()
    assert not (make(kept, accept_damaged=True) / "files" / damaged.path).exists()


def test_it_refuses_before_it_begins(trial: Trial, kept: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(KeepingError, match="lies among the files of trials"):
        make(Path(settings.VAR) / "trials" / "backups")
    (tmp_path / "file").write_text("")
    with pytest.raises(KeepingError, match="cannot be written"):
        make(tmp_path / "file")
    kept.mkdir()
    with (kept / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(KeepingError, match="another backup is being made"):
            make(kept)
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(1, 1, 1000))
    with pytest.raises(KeepingError, match=r"1.000.B free, the backup needs about"):
        make(kept)
    monkeypatch.setattr(backup, "server_major", lambda: 99)
    with pytest.raises(KeepingError, match="install the package postgresql-client-99"):
        make(kept)


def test_what_a_killed_one_left_goes_and_was_never_whole(
    trial: Trial, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (kept / ".part-1" / "files").mkdir(parents=True)
    with monkeypatch.context() as broken:
        broken.setattr(Programs, "read_through", lambda *_: (_ for _ in ()).throw(ChangedBackup("of a disk that lies")))
        with pytest.raises(ChangedBackup):
            make(kept)
    assert [path.name for path in kept.iterdir()] == [".lock"]
    Artifact.objects.update(path="trials/../secret-key")
    with pytest.raises(KeepingError, match="names a file that is none of a trial"):
        make(kept)


@pytest.mark.parametrize(("copied", "meant"), [(r"a\\b\nc\td", "a\\b\nc\td"), ("plain", "plain")])
def test_it_reads_what_copy_escaped(copied: str, meant: str) -> None:
    assert unescaped(copied) == meant
