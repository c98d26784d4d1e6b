"""Where compiled kernels are kept."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from analysis import kernels


def test_they_lie_beside_the_sources_where_those_can_be_written() -> None:
    assert next(kernels._places()) == Path(kernels.__file__).parent / "__pycache__"


def test_beside_read_only_sources_they_lie_in_the_users_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    chosen = kernels._cache_directory()
    assert chosen.parent == tmp_path / "cache" / "rankwire-kernels"
    assert chosen.stat().st_mode & 0o077 == 0


def test_a_directory_of_somebody_else_is_never_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no directory")
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    own = kernels._cache_directory()
    assert own.parent == tmp_path / f"rankwire-kernels-{os.getuid()}"
    own.parent.chmod(0o777)  # others could put code there
    other = kernels._cache_directory()
    assert other.parent != own.parent
    assert other.parent.stat().st_mode & 0o077 == 0


def test_every_change_of_a_kernel_has_a_directory_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = kernels._fingerprint()
    assert plain == kernels._fingerprint()
    monkeypatch.setenv("NUMBA_BOUNDSCHECK", "1")
    assert kernels._fingerprint() != plain


@pytest.mark.timeout(120)  # compiles every kernel anew
def test_after_warming_up_an_analysis_compiles_nothing(tmp_path: Path, mpi_capture: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    for command in (["analysis.warm_up"], ["analysis", "stats", "--json", str(mpi_capture)]):
        argv = [sys.executable, "-m", *command]
        subprocess.run(argv, check=True, env=environment, timeout=100, stdout=subprocess.DEVNULL)
        compiled = sorted(path.name for path in tmp_path.rglob("*.nbc"))
        if command == ["analysis.warm_up"]:
            warmed_up = compiled
    assert len(compiled) > 10
    assert compiled == warmed_up
