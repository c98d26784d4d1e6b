"""Libraries of C texts: built once, with reasons for failures."""

from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path

import pytest

from workers import compiled
from workers.compiled import Library, NotCompiled

TEXTS = {"main.c": '#include "n.h"\nint n(void) { return N; }\n', "n.h": "#define N 42\n"}


@pytest.fixture
def answering(tmp_path: Path) -> Library:
    """Compile a library for real, in a home of its own."""
    return Library("answering", tmp_path, "main.c", TEXTS)


@pytest.fixture
def compiler(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """A compiler that takes what has no "#error"; the texts of each of its runs."""
    runs: list[dict[str, str]] = []

    def run(argv: list[str], *, cwd: str, **_: object) -> subprocess.CompletedProcess[str]:
        texts = {path.name: path.read_text() for path in Path(cwd).iterdir()}
        runs.append(texts)
        if "#error" in texts["main.c"]:
            return subprocess.CompletedProcess(argv, 1, stderr="main.c:1:2: error: no\nmore\n")
        Path(cwd, "made.so").touch(mode=0o600)
        return subprocess.CompletedProcess(argv, 0)

    monkeypatch.setattr(compiled.subprocess, "run", run)
    return runs


def test_it_is_made_of_its_texts_once_for_every_user(
    answering: Library, compiler: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = answering.built()
    assert compiler == [TEXTS]
    assert made.stat().st_mode & 0o777 == 0o755
    monkeypatch.setattr(compiled, "find_spec", lambda _: None)
    assert answering.obstacle() == ""
    assert answering.built() == made
    assert len(compiler) == 1
    assert sorted(path.name for path in made.parent.iterdir()) == [made.name, "answering.lock"]


def test_other_texts_are_another_library_that_needs_the_compiler(
    answering: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = dataclasses.replace(answering, texts={**TEXTS, "n.h": "#define N 43\n"})
    assert other.path() != answering.path()
    monkeypatch.setattr(compiled, "find_spec", lambda _: None)
    with pytest.raises(NotCompiled, match="the compiler is missing: install the Python package ziglang"):
        other.built()


@pytest.mark.usefixtures("compiler")
def test_an_unknown_architecture_and_a_text_that_is_refused_are_reported(answering: Library) -> None:
    with pytest.raises(NotCompiled, match="the library answering is not made for the architecture riscv64"):
        answering.built("riscv64")
    wrong = dataclasses.replace(answering, texts={"main.c": "#error no"})
    with pytest.raises(NotCompiled, match=r"the library answering could not be built: main\.c:1:2: error: no$"):
        wrong.built()
    assert not wrong.path().exists()
