"""Input files are read by the rights of a trial's programs."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from workers.launchers import limits
from workers.launchers.limits import Limits


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that others can enter, with a secret one below it."""
    monkeypatch.setattr(tempfile, "tempdir", "/no-such-place")
    monkeypatch.setattr(limits, "_open_to_others", lambda _: True)
    (tmp_path / "var").mkdir()
    (tmp_path / "var" / "secret-key").write_text("secret")
    (tmp_path / "in.deck").write_text("run {steps}")
    return tmp_path


def read(place: Path, name: str) -> str:
    return Limits(hidden=(place / "var",)).read_text(str(place / name))


def test_world_readable_files_are_read(place: Path) -> None:
    assert read(place, "in.deck") == "run {steps}"


def test_it_reads_nothing_that_is_hidden_whatever_leads_there(place: Path) -> None:
    (place / "link").symlink_to(place / "var" / "secret-key")
    (place / "folder").symlink_to(place / "var")
    for name in ("var/secret-key", "link", "folder/secret-key"):
        with pytest.raises(OSError, match="programs of trials may not read it"):
            read(place, name)


@pytest.mark.skipif(os.geteuid() != 0, reason="else the worker's rights are those of its trials")
def test_it_reads_nothing_that_is_closed_to_others(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "in.deck").chmod(0o640)
    with pytest.raises(OSError, match="programs of trials may not read it"):
        read(place, "in.deck")
    (place / "in.deck").chmod(0o644)
    monkeypatch.setattr(limits, "_open_to_others", lambda _: False)
    with pytest.raises(OSError, match="programs of trials may not read it"):
        read(place, "in.deck")


def test_it_reads_plain_texts_only(place: Path) -> None:
    os.mkfifo(place / "pipe")
    (place / "image").write_bytes(b"\xff\xd8")
    (place / "long").write_bytes(b"x" * (limits.MOST_TEXT_BYTES + 1))
    for name, words in (
        ("pipe", "no plain file"),
        ("var", "irectory|no plain file"),
        ("image", "UTF-8"),
        ("long", "longer"),
    ):
        with pytest.raises(OSError, match=words):
            read(place, name)
