"""numba loops only: a kernel reads arrays and writes arrays, and its caller has checked everything before.

Kernels release the interpreter lock, so two of them run side by side in threads of one process. None uses numba's own
threading layer, which does not survive a fork (Celery prefork).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])


def _cache_directory() -> str:
    """Compiled kernels lie beside the sources; where those are read-only, in a directory of this user alone.

    A directory that others can write would let them choose the machine code that we run.
    """
    beside = Path(__file__).parent / "__pycache__"
    if os.access(beside if beside.exists() else beside.parent, os.W_OK):
        return str(beside)
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rankwire-kernels"
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return tempfile.mkdtemp(prefix="rankwire-kernels-")
    return str(home)


if "NUMBA_CACHE_DIR" not in os.environ:
    os.environ["NUMBA_CACHE_DIR"] = _cache_directory()

from numba import njit  # noqa: E402 - numba reads NUMBA_CACHE_DIR when it is imported


def jit(function: Function) -> Function:
    """Compile on first call, keep the machine code on disk, run without the interpreter lock."""
    return cast(Function, njit(cache=True, nogil=True, error_model="numpy")(function))
