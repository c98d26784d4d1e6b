"""MPI libraries by the names of their files, and launch commands by what they say of themselves. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

OPEN_MPI: Final = "Open MPI"
MPICH: Final = "MPICH or a library with its interface (Intel MPI, MVAPICH2)"
_OWN_PARTS: Final = re.compile(r"libopen-(rte|pal)\.so|libprrte\.so")
"""What only Open MPI is made of: its old versions have the same libmpi.so.12 as MPICH's."""
_MPICH: Final = re.compile(r"libmpich[a-z0-9]*\.so|libmpi(fort|cxx)?\.so($|\.12(\.|$))")
"""Intel MPI may lie there without links, under the name alone."""
_NEW_OPEN_MPI: Final = re.compile(r"libmpi\.so\.[2-9]\d(\.|$)")
_HYDRA: Final = re.compile(r"Hydra |Intel\(R\) MPI|MVAPICH|mpich", re.IGNORECASE)


def library_of(libraries: Sequence[str]) -> tuple[str, str] | None:
    """Return whose MPI library is among the files that a program loads, and its name; None where there is none.

    A script loads it only later, a static program has it inside: nothing is known of those.
    """
    open_mpi = any(map(_OWN_PARTS.match, libraries))
    for name in libraries:
        if _NEW_OPEN_MPI.match(name) or (open_mpi and re.match(r"libmpi\.so(\.|$)", name)):
            return OPEN_MPI, name
    return next(((MPICH, name) for name in libraries if _MPICH.match(name)), None)


def launcher_of(version: str | None) -> str | None:
    """Return whose launch command says this of its version; None for one that is not known."""
    if version is None:
        return None
    return OPEN_MPI if "Open MPI" in version else MPICH if _HYDRA.search(version) else None
