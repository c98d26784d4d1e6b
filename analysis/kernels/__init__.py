"""numba loops only: a kernel reads arrays and writes arrays, and its caller has checked everything before.

Kernels release the interpreter lock, so two of them run side by side in threads of one process. None uses numba's own
threading layer, which does not survive a fork (Celery prefork).
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

_KEEP_OUTDATED_S = 7 * 86_400
"""Processes that still run the old code may look their kernels up for a while."""


def _fingerprint() -> str:
    """Names one state of all kernels: numba itself does not notice when a function that a kernel calls has changed."""
    digest = hashlib.sha256(os.environ.get("NUMBA_BOUNDSCHECK", "").encode())
    for source in sorted([*Path(__file__).parent.glob("*.py"), Path(__file__).parents[1] / "packets.py"]):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _cache_directory() -> Path:
    """Compiled kernels lie beside the sources; where those are read-only, in a directory of this user alone.

    A directory that others can write would let them choose the machine code that we run.
    """
    sources = Path(__file__).parent
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    place = sources / "__pycache__" if os.access(sources, os.W_OK) else home / "rankwire-kernels"
    chosen = place / f"compiled-{_fingerprint()}"
    try:
        chosen.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return Path(tempfile.mkdtemp(prefix="rankwire-kernels-"))
    for outdated in place.glob("compiled-*"):
        if outdated != chosen and time.time() - outdated.stat().st_mtime > _KEEP_OUTDATED_S:
            shutil.rmtree(outdated, ignore_errors=True)
    return chosen


if "NUMBA_CACHE_DIR" not in os.environ:
    os.environ["NUMBA_CACHE_DIR"] = str(_cache_directory())

from numba import njit  # noqa: E402 - numba reads NUMBA_CACHE_DIR when it is imported


def jit(function: Function) -> Function:
    """Compile on first call, keep the machine code on disk, run without the interpreter lock."""
    return cast(Function, njit(cache=True, nogil=True, error_model="numpy")(function))
