"""Changed backups are detected, with the name of the file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from config.backup import layout, restore
from config.backup.errors import BackupError, ChangedBackup


def about(**more: Any) -> layout.About:
    return layout.About(
        made_at="2026-01-02T03:04:05+00:00",
        installation="lab",
        postgresql="15",
        database_bytes=1,
        files=1,
        file_bytes=5,
        active_trials=0,
        secrets=False,
        **more,
    )


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with the layout of a backup."""
    place = tmp_path / "rankwire-20260102T030405Z"
    contents = {"database.dump": "rows", "files/trials/7/out put\n.txt": "hello", "settings.env": ""}
    for path, text in contents.items():
        layout.write_new(place / path, text)
    sums = layout.write_sums(place, [(layout.hash_file(place / path)[0], path) for path in contents])
    about(migrations={"experiments": "0001_initial"}, sums=sums).write(place)
    return place


def overwrite(file: Path) -> None:
    file.write_bytes(b"H" + file.read_bytes()[1:])


def change_contents(file: Path) -> None:
    """Change the contents, but not their hash."""
    file.write_text(json.dumps({**json.loads(file.read_text()), "files": 3}))


def link(file: Path) -> None:
    file.unlink()
    file.symlink_to("/etc/hostname")


@pytest.mark.parametrize(
    ("path", "change", "message"),
    [
        ("files/trials/7/out put\n.txt", overwrite, "was changed"),
        ("files/trials/7/out put\n.txt", Path.unlink, "is missing"),
        ("files/trials/7/out put\n.txt", link, "is not readable"),
        ("files/trials/8.txt", Path.touch, "was added"),
        ("database.dump", overwrite, "was changed"),
        ("SHA256SUMS", overwrite, "was changed"),
        ("SHA256SUMS", Path.unlink, "is missing"),
        ("backup.json", change_contents, "was changed"),
        ("backup.json", overwrite, "was changed"),
    ],
)
def test_it_names_the_file(place: Path, path: str, change: Callable[[Path], object], message: str) -> None:
    assert layout.verify(place, layout.About.read(place))
    change(place / path)
    with pytest.raises(ChangedBackup) as refused:
        layout.verify(place, layout.About.read(place))
    assert str(place / path) in str(refused.value)
    assert message in str(refused.value)


def test_it_takes_the_newest_whole_one(place: Path) -> None:
    part = place.with_name("rankwire-20270102T030405Z")
    part.mkdir()
    assert restore.chosen(place.parent) == restore.chosen(place) == place
    with pytest.raises(BackupError, match="is not a complete backup"):
        layout.About.read(restore.chosen(part))
    with pytest.raises(BackupError, match="is not a directory"):
        restore.chosen(place / "database.dump")


def test_it_refuses_what_a_newer_version_made(place: Path) -> None:
    restore._require_known(layout.About.read(place))
    newer = about(migrations={"experiments": "9999_of_the_future"})
    with pytest.raises(BackupError, match="from a newer version of Rankwire"):
        restore._require_known(newer)
    values = json.loads((place / "backup.json").read_text())
    (place / "backup.json").write_text(json.dumps({**values, "format": 2}))
    with pytest.raises(BackupError, match="format 2; this version reads 1"):
        layout.About.read(place)
