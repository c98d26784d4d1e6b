"""Whether the launch command and the MPI library of a program know each other. Pure: it reads the description of a trial's environment.

A program whose library does not understand its launcher does not fail: each of n ranks takes itself for the only one, and n
programs of one rank run side by side. Nothing of that is what was asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from analysis.numbers import plural

OPEN_MPI: Final = "Open MPI"
MPICH: Final = "MPICH or a library with its interface (Intel MPI, MVAPICH2)"
_OWN_PARTS: Final = re.compile(r"libopen-(rte|pal)\.so|libprrte\.so")
"""What only Open MPI is made of: its old versions have the same libmpi.so.12 as MPICH's."""
_MPICH: Final = re.compile(r"libmpich[a-z0-9]*\.so|libmpi(fort|cxx)?\.so\.12(\.|$)")
_NEW_OPEN_MPI: Final = re.compile(r"libmpi\.so\.[2-9]\d(\.|$)")
_HYDRA: Final = re.compile(r"Hydra |Intel\(R\) MPI|MVAPICH|mpich", re.IGNORECASE)


def library_of(libraries: Sequence[str]) -> tuple[str, str] | None:
    """Return whose MPI library is among the files that a program loads, and its name; None where there is none.

    A script loads it only later, a static program has it inside: nothing is known of those.
    """
    open_mpi = any(map(_OWN_PARTS.match, libraries))
    for name in libraries:
        if _NEW_OPEN_MPI.match(name) or (open_mpi and name.startswith("libmpi.so.")):
            return OPEN_MPI, name
    return next(((MPICH, name) for name in libraries if _MPICH.match(name)), None)


def launcher_of(version: str | None) -> str | None:
    """Return whose launch command says this of its version; None for one that is not known."""
    if version is None:
        return None
    return OPEN_MPI if "Open MPI" in version else MPICH if _HYDRA.search(version) else None


def why_singletons(environment: Mapping[str, Any], *, program: str, ranks: int, setting: bool) -> str | None:
    """Return why this program would not run as one of ``ranks`` ranks here, with what mends it; None where nothing says so.

    ``setting``: whether the cluster's settings choose the library that launches.
    """
    built = library_of((environment.get("program") or {}).get("libraries") or ())
    launcher = launcher_of(environment.get("mpi"))
    if ranks < 2 or built is None or launcher is None or built[0] == launcher:
        return None
    family, library = built
    instead = f"set “mpi” of the cluster to {'openmpi' if family == OPEN_MPI else 'mpich'}, or build it with"
    return (
        f"{program} is built with {family} ({library}), and the launch command is that of {launcher}: it would run as "
        f"{plural(ranks, 'program')} of one rank each. To mend it, {instead if setting else 'build it with'} "
        f"the compiler of {launcher}."
    )
