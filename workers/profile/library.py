"""Profile library for an architecture; without it trials state the reason."""

from __future__ import annotations

import functools
import platform
from pathlib import Path

from workers.compiled import TARGETS, Library, NotCompiled
from workers.errors import ProfileUnavailable
from workers.profile import source


def library_path(machine: str = platform.machine()) -> Path:
    """Return an architecture's library path. Raise ProfileUnavailable if unknown."""
    if machine not in TARGETS:
        raise ProfileUnavailable(f"there is no profile for hosts of the architecture {machine or 'unknown'}")
    return _shim().path(machine)


def library(machine: str = platform.machine()) -> Path:
    """Return the library, built if missing. Raise ProfileUnavailable with the reason."""
    library_path(machine)
    try:
        return _shim().built(machine)
    except NotCompiled as error:
        raise ProfileUnavailable(str(error)) from error


@functools.cache
def _shim() -> Library:
    return Library("mpi-profile", source.SHIM.parent, source.SHIM.name, source.texts(), ("-ldl",))
