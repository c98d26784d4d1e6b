"""Version of Rankwire in a clone and in an image."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dashboard.help import version


@pytest.fixture(autouse=True)
def forgotten() -> None:
    version.version.cache_clear()


def test_version_names_the_commit_of_a_clone() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+( \([0-9a-f]{8}\))?", version.version())


def test_version_without_a_clone_is_that_of_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    monkeypatch.setattr(version, "ROOT", tmp_path)
    assert version.version() == "1.2.3"
    (tmp_path / ".git").mkdir()
    version.version.cache_clear()
    assert version.version() == "1.2.3", "git knows no commit there"
