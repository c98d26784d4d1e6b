"""Where the library cannot be had, the reason is said, and trials run as ever."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from workers.errors import ProfileUnavailable
from workers.profile import library as module
from workers.profile.library import library, library_path


@pytest.fixture
def nothing_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No library lies anywhere yet."""
    monkeypatch.setattr(module, "_places", lambda: iter([tmp_path / "cache"]))
    return tmp_path / "cache"


def test_a_missing_compiler_is_named(nothing_built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    with pytest.raises(ProfileUnavailable, match="compiler is missing: install the Python package ziglang"):
        library()


@pytest.mark.parametrize(("machine", "said"), [("riscv64", "architecture riscv64"), ("", "that they do not tell")])
def test_another_architecture_has_none(machine: str, said: str) -> None:
    with pytest.raises(ProfileUnavailable, match=said):
        library(machine)


def test_what_the_compiler_refuses_is_said_and_nothing_is_left(
    nothing_built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(module.TARGETS, platform.machine(), "nowhere")
    with pytest.raises(ProfileUnavailable, match="could not be built: error: "):
        library()
    assert [file.name for file in nothing_built.iterdir()] == ["mpi-profile.lock"]


def test_a_full_disk_or_a_closed_directory_is_said(nothing_built: Path) -> None:
    nothing_built.write_text("a file is in the way")
    with pytest.raises(ProfileUnavailable, match=r"could not be built: .*File exists"):
        library()


def test_it_needs_no_newer_c_library_than_2_17() -> None:
    """Versions of symbols that it asks the C library for stand in it as text."""
    text = library().read_bytes()
    asked = {
        tuple(map(int, version.split(b".")))
        for version in (part.split(b"\0")[0] for part in text.split(b"GLIBC_")[1:])
        if version[:1].isdigit()
    }
    assert asked
    assert max(asked) <= (2, 17)
    assert library() == library_path()
