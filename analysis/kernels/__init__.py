"""Kernels compiled by numba: loops over arrays; callers check all arguments.

Kernels release the interpreter lock, so two of them run in parallel in threads of one process. None uses numba's own
threading layer, which does not survive a fork (Celery prefork).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])

_KEEP_OUTDATED_S = 7 * 86_400
"""Processes that still run the old code may load its kernels."""


def _fingerprint() -> str:
    """Name the state of all kernels; numba does not notice changed callees."""
    digest = hashlib.sha256(os.environ.get("NUMBA_BOUNDSCHECK", "").encode())
    for source in sorted([*Path(__file__).parent.rglob("*.py"), Path(__file__).parents[1] / "packets.py"]):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _parents() -> Iterator[Path]:
    """Yield directories for compiled kernels, best first.

    No directory is writable by other users, who could replace the machine code.
    """
    sources = Path(__file__).parent
    if os.access(sources, os.W_OK):
        yield sources / "__pycache__"
    with contextlib.suppress(RuntimeError):  # a user without a home directory
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rankwire-kernels"
    private = Path(tempfile.gettempdir()) / f"rankwire-kernels-{os.getuid()}"
    with contextlib.suppress(OSError):
        private.mkdir(mode=0o700)
    if private.exists() and (status := private.lstat()).st_uid == os.getuid() and stat.S_IMODE(status.st_mode) == 0o700:
        yield private
    yield Path(tempfile.mkdtemp(prefix="rankwire-kernels-"))  # another user owns that name


def _cache_directory() -> Path:
    """Create the directory for this state of the kernels; remove old ones."""
    name = f"compiled-{_fingerprint()}"
    for parent in _parents():
        try:
            (parent / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            continue
        for outdated in parent.glob("compiled-*"):
            with contextlib.suppress(OSError):
                if outdated.name != name and time.time() - outdated.stat().st_mtime > _KEEP_OUTDATED_S:
                    shutil.rmtree(outdated, ignore_errors=True)  # noqa: TID251 - a tree of our own
        return parent / name
    raise OSError("no directory for compiled kernels is writable")


if "NUMBA_CACHE_DIR" not in os.environ:
    os.environ["NUMBA_CACHE_DIR"] = str(_cache_directory())


def jit(function: Function, *, forceinline: bool = False) -> Function:
    """Compile on first call, cache on disk, run without the interpreter lock."""
    from numba import njit  # reads NUMBA_CACHE_DIR when it is imported

    return cast(Function, njit(cache=True, nogil=True, error_model="numpy", forceinline=forceinline)(function))


def inlined(function: Function) -> Function:
    """Compile like ``jit``, and inline: calls would pass numbers through memory."""
    return jit(function, forceinline=True)
