"""Input files are read by the rights of a trial's programs."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from workers.launchers import limits
from workers.launchers.limits import Limits


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that others can enter, with a secret one below it."""
    monkeypatch.setattr(tempfile, "tempdir", "/no-such-place")
    monkeypatch.setattr(limits, "HIDDEN", (tmp_path / "run",))
    monkeypatch.setattr(limits, "_open_to_others", lambda _: True)
    for name in ("var", "run"):
        (tmp_path / name).mkdir()
    (tmp_path / "run" / "secret-key").write_text("secret")
    (tmp_path / "var" / "secret-key").write_text("secret")
    (tmp_path / "in.deck").write_text("run {steps}")
    return tmp_path


def read(directory: Path, name: str) -> str:
    return Limits(hidden=(directory / "var",)).read_text(str(directory / name))


def test_world_readable_files_are_read(directory: Path) -> None:
    assert read(directory, "in.deck") == "run {steps}"


def test_it_reads_nothing_that_is_hidden_whatever_leads_there(directory: Path) -> None:
    (directory / "link").symlink_to(directory / "var" / "secret-key")
    (directory / "folder").symlink_to(directory / "var")
    for name in ("var/secret-key", "link", "folder/secret-key", "run/secret-key", "/proc/self/cmdline"):
        with pytest.raises(OSError, match="programs of trials may not read it"):
            read(directory, name)


def test_it_reads_no_file_that_another_root_or_nothing_has_at_its_path(directory: Path) -> None:
    (directory / "in.deck").rename(directory / "opened")
    with (directory / "opened").open() as stream:
        (directory / "opened").unlink()
        (directory / "opened (deleted)").write_text("another one")
        with pytest.raises(OSError, match="programs of trials may not read it"):
            read(directory, f"/proc/self/fd/{stream.fileno()}")


@pytest.mark.skipif(os.geteuid() != 0, reason="else the worker's rights are those of its trials")
def test_it_reads_nothing_that_is_closed_to_others(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (directory / "in.deck").chmod(0o640)
    with pytest.raises(OSError, match="programs of trials may not read it"):
        read(directory, "in.deck")
    (directory / "in.deck").chmod(0o644)
    monkeypatch.setattr(limits, "_open_to_others", lambda _: False)
    with pytest.raises(OSError, match="programs of trials may not read it"):
        read(directory, "in.deck")


def test_it_reads_plain_texts_only(directory: Path) -> None:
    os.mkfifo(directory / "pipe")
    (directory / "image").write_bytes(b"\xff\xd8")
    (directory / "long").write_bytes(b"x" * (limits.MOST_TEXT_BYTES + 1))
    for name, words in (
        ("pipe", "no plain file"),
        ("var", "irectory|no plain file"),
        ("image", "UTF-8"),
        ("long", "longer"),
    ):
        with pytest.raises(OSError, match=words):
            read(directory, name)
