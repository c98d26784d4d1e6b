"""The cache directory of compiled kernels."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from analysis import kernels


def test_kernels_are_cached_with_writable_sources() -> None:
    assert next(kernels._parents()) == Path(kernels.__file__).parent / "__pycache__"


def test_kernels_of_read_only_sources_are_in_the_users_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    chosen = kernels._cache_directory()
    assert chosen.parent == tmp_path / "cache" / "rankwire-kernels"
    assert chosen.stat().st_mode & 0o077 == 0


def test_without_a_writable_cache_kernels_are_in_a_directory_of_the_user_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no directory")
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    first = kernels._cache_directory()
    assert first == kernels._cache_directory()
    assert first.parent.parent == tmp_path
    assert first.parent.stat().st_mode & 0o077 == 0
    first.parent.chmod(0o777)  # as if another user had made it
    other = kernels._cache_directory()
    assert other.parent != first.parent
    assert other.parent.stat().st_mode & 0o077 == 0


def test_every_change_of_a_kernel_has_a_directory_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = kernels._fingerprint()
    assert plain == kernels._fingerprint()
    monkeypatch.setenv("NUMBA_BOUNDSCHECK", "1")
    assert kernels._fingerprint() != plain


COMPILED = """
import importlib, json, pathlib, sys
from analysis import kernels
from numba.core.dispatcher import Dispatcher

def compiled():
    '''Every kernel with its signatures, and how many of those were not found among the kept ones.'''
    room = pathlib.Path(kernels.__file__).parent
    names = ['.'.join(path.relative_to(room).with_suffix('').parts) for path in room.rglob('[a-z]*.py')]
    modules = [importlib.import_module(f'analysis.kernels.{name}') for name in names]
    found = {value for module in modules for value in vars(module).values() if isinstance(value, Dispatcher)}
    signatures = {f'{each.py_func.__module__}.{each.__name__}{signature}' for each in found for signature in each.signatures}
    return {'signatures': sorted(signatures), 'missed': sum(sum(each.stats.cache_misses.values()) for each in found)}
"""


@pytest.mark.timeout(150)  # the first program of a new state of the sources compiles every kernel
def test_after_warming_up_an_analysis_compiles_nothing(mpi_capture: Path) -> None:
    warmed_up = compiled_by("from analysis import warm_up; warm_up.warm_up()")
    used = compiled_by(f"import analysis; analysis.analyse(pathlib.Path({str(mpi_capture)!r}))")
    assert len(used["signatures"]) > 10
    assert set(used["signatures"]) <= set(warmed_up["signatures"])
    assert used["missed"] == 0


def compiled_by(program: str) -> dict[str, Any]:
    """Return the kernels that a new process compiled or loaded from the cache."""
    argv = [sys.executable, "-c", f"{COMPILED}\n{program}\nprint(json.dumps(compiled()))"]
    done = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=140)
    compiled: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return compiled
