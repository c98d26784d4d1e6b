"""The shim as a library for the hosts' architecture. Where it cannot be made, trials run as ever and say why they have no profile."""

from __future__ import annotations

import platform
from pathlib import Path

from workers.compiled import TARGETS, Library, NotCompiled
from workers.errors import ProfileUnavailable
from workers.profile import source


def library_path(machine: str = platform.machine()) -> Path:
    """Return where the library for an architecture lies, or will. Raise ProfileUnavailable for an unknown one."""
    if machine not in TARGETS:
        raise ProfileUnavailable(
            f"there is no profile for hosts of the architecture {machine or 'that they do not tell'}"
        )
    return _shim().path(machine)


def library(machine: str = platform.machine()) -> Path:
    """Return the library, built if it is not there. Raise ProfileUnavailable with the reason."""
    library_path(machine)
    try:
        return _shim().built(machine)
    except NotCompiled as error:
        raise ProfileUnavailable(str(error)) from error


def _shim() -> Library:
    return Library("mpi-profile", source.SHIM.parent, source.SHIM.name, source.texts(), ("-ldl",))
