"""numba loops only: a kernel reads arrays and writes arrays, and its caller has checked everything before.

Kernels release the interpreter lock, so two of them run side by side in threads of one process. None uses numba's own
threading layer, which does not survive a fork (Celery prefork).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from analysis.kernels.ready import Ready

Function = TypeVar("Function", bound=Callable[..., Any])

_KEEP_OUTDATED_S = 7 * 86_400
"""Processes that still run the old code may look their kernels up for a while."""


def _fingerprint() -> str:
    """Names one state of all kernels: numba itself does not notice when a function that a kernel calls has changed."""
    digest = hashlib.sha256(os.environ.get("NUMBA_BOUNDSCHECK", "").encode())
    for source in sorted([*Path(__file__).parent.rglob("*.py"), Path(__file__).parents[1] / "packets.py"]):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _places() -> Iterator[Path]:
    """Where compiled kernels may lie, best first: beside the sources, in the user's cache, in a directory of this user alone.

    A directory that others can write would let them choose the machine code that we run.
    """
    sources = Path(__file__).parent
    if os.access(sources, os.W_OK):
        yield sources / "__pycache__"
    with contextlib.suppress(RuntimeError):  # a user without a home
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rankwire-kernels"
    shared = Path(tempfile.gettempdir()) / f"rankwire-kernels-{os.getuid()}"
    with contextlib.suppress(OSError):
        shared.mkdir(mode=0o700, exist_ok=True)
        facts = shared.lstat()
        if stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.getuid() and not facts.st_mode & 0o077:
            yield shared
    yield Path(tempfile.mkdtemp(prefix="rankwire-kernels-"))


def _cache_directory() -> Path:
    """The directory for this state of the kernels, made where it did not exist; those of old states are removed."""
    name = f"compiled-{_fingerprint()}"
    for place in _places():
        try:
            (place / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            continue
        for outdated in place.glob("compiled-*"):
            with contextlib.suppress(OSError):
                if outdated.name != name and time.time() - outdated.stat().st_mtime > _KEEP_OUTDATED_S:
                    shutil.rmtree(outdated, ignore_errors=True)
        return place / name
    raise OSError("no directory for compiled kernels can be written")


if "NUMBA_CACHE_DIR" not in os.environ:
    os.environ["NUMBA_CACHE_DIR"] = str(_cache_directory())

_dispatchers: list[Any] = []
"""Every kernel of this process that numba compiles."""
_ready: Ready | None = None


def use_ready() -> None:
    """From now on kernels run without numba, from kept code; before any module with kernels is imported.

    Raises NotReady where nothing was kept or numba was told something special (its variables in the environment).
    """
    from analysis.kernels.ready import NotReady, Ready

    global _ready
    told = {name for name in os.environ if name.startswith("NUMBA_")} - {"NUMBA_CACHE_DIR"}
    if told or platform.machine() != "x86_64":
        raise NotReady("numba itself is wanted")
    _ready = Ready(Path(os.environ["NUMBA_CACHE_DIR"]), _fingerprint())


def keep_ready() -> None:
    """Write down what this process has compiled or looked up, for processes that come and ``use_ready``."""
    from analysis.kernels.ready import keep

    keep(_dispatchers, Path(os.environ["NUMBA_CACHE_DIR"]), _fingerprint())


def without_numba() -> bool:
    """Whether kernels run from kept code, and nothing of numba may be imported."""
    return _ready is not None


def jit(function: Function) -> Function:
    """Compile on first call, keep the machine code on disk, run without the interpreter lock."""
    return _compiled(function, inlined=False)


def inlined(function: Function) -> Function:
    """As ``jit``, for what is a part of one loop: LLVM makes no call of it, however long it is.

    A call hands a dozen numbers over through memory and looks at a status afterwards.
    """
    return _compiled(function, inlined=True)


def _compiled(function: Function, *, inlined: bool) -> Function:
    if _ready is not None:
        return cast(Function, _ready.kernel(function))
    from numba import njit  # reads NUMBA_CACHE_DIR when it is imported

    _dispatchers.append(njit(cache=True, nogil=True, error_model="numpy", forceinline=inlined)(function))
    return cast(Function, _dispatchers[-1])
