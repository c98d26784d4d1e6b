"""Choice of the launch command: the settings', else of the program's library."""

from __future__ import annotations

import dataclasses
import os
import re
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from workers.agent import machine, mpi_files
from workers.hosts.programs import find_program, search_path
from workers.launchers.job import Job, Launch
from workers.launchers.limits import Limits

AUTO: Final = "auto"
OPEN_MPI: Final = "Open MPI"
MPICH: Final = "MPICH or a library with its interface (Intel MPI, MVAPICH2)"
_OWN_PARTS: Final = re.compile(r"libopen-(rte|pal)\.so|libprrte\.so")
"""Parts of Open MPI alone: its old versions have the same libmpi.so.12 as MPICH."""
_MPICH: Final = re.compile(r"libmpich[a-z0-9]*\.so|libmpi(fort|cxx)?\.so($|\.12(\.|$))")
"""Intel MPI may be installed without links, under the name alone."""
_NEW_OPEN_MPI: Final = re.compile(r"libmpi\.so\.[2-9]\d(\.|$)")
_HYDRA: Final = re.compile(r"Hydra |Intel\(R\) MPI|MVAPICH|mpich", re.IGNORECASE)
_LIBRARIES: Final = {OPEN_MPI: "openmpi", MPICH: "mpich"}
_PROGRAMS: Final = {
    "openmpi": ("mpirun", "mpirun.openmpi", "orterun", "prterun"),
    "mpich": ("mpiexec.hydra", "mpiexec.mpich", "mpirun.mpich"),
}
"""Names under which systems have the launch command of a library, that of the library itself first."""
_SYSTEM_PROGRAMS: Final = (Path("/bin"), Path("/usr/bin"))
"""Found under the plain names too."""
_MOST_NEAR: Final = 8
"""Directories in which a launch command is looked for: a hostile host names thousands, and each costs questions."""


def library_of(libraries: Sequence[str]) -> tuple[str, str] | None:
    """Return family and name of the MPI library among a program's files, or None.

    Scripts load it later and static programs contain it: their library is unknown.
    """
    open_mpi = any(map(_OWN_PARTS.match, libraries))
    for name in libraries:
        if _NEW_OPEN_MPI.match(name) or (open_mpi and re.match(r"libmpi\.so(\.|$)", name)):
            return OPEN_MPI, name
    return next(((MPICH, name) for name in libraries if _MPICH.match(name)), None)


def launcher_of(version: str | None) -> str | None:
    """Return the family of a launch command by its version text; None if unknown."""
    if version is None:
        return None
    return OPEN_MPI if "Open MPI" in version else MPICH if _HYDRA.search(version) else None


class Host(Protocol):
    """Host that runs the launch command."""

    def find(self, program: str) -> str | None:
        """Return the path of a program, or None."""

    def version(self, program: str) -> str | None:
        """Return the version text of a launch command, or None."""


def chosen(host: Host, loaded: Sequence[str], *, library_setting: str = AUTO, program: str | None = None) -> Launch:
    """Return the launch of a program that loads these MPI files.

    The files are from `workers.agent.mpi_files`. ``library_setting`` and ``program``: of the settings, which take
    precedence over the files.
    """
    if library_setting != AUTO:
        return Launch(library_setting, program or own_program(library_setting))
    if program is not None:
        return Launch(_family(host, program) or "openmpi", program)
    built = library_of([Path(name).name for name in loaded])
    if built is None:
        return usual(host)
    library = _LIBRARIES[built[0]]
    near_library = (
        str(directory / name) for directory in _near_directories(loaded) for name in _launch_programs(library)
    )
    candidates = [*near_library, *_launch_programs(library)]
    fits = (candidate for candidate in candidates if host.find(candidate) and _family(host, candidate) == library)
    return Launch(library, next(fits, _launch_programs(library)[0]))


def own_program(library: str) -> str:
    """Return the usual name of a library's launch command."""
    return _launch_programs(library)[0]


def usual(host: Host) -> Launch:
    """Return the launch of an unknown program: mpirun of any library, else Hydra."""
    family = _family(host, "mpirun")
    if family is None and host.find("mpiexec.hydra"):
        return Launch("mpich", "mpiexec.hydra")
    return Launch(family or "openmpi", "mpirun")


def usual_here() -> Launch:
    """Return the usual launch on this machine."""
    return usual(_ThisMachine())


def chosen_here(job: Job, path: str | None = None) -> Job:
    """Return the job with its launch on this machine; ``path``: PATH of its programs."""
    variables = {"PATH": path or search_path(), **job.environment}
    loaded = mpi_files.loaded_by(job.program, variables, str(job.workdir))
    # A link in their paths could lead elsewhere a moment later.
    directories = [os.path.realpath(os.path.dirname(name)) if name.startswith("/") else "" for name in loaded]  # noqa: PTH120
    real = [str(Path(directory, Path(name).name)) for directory, name in zip(directories, loaded, strict=True)]
    return dataclasses.replace(job, launch=chosen(_ThisMachine(job.limits), real))


class _ThisMachine:
    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()

    def find(self, program: str) -> str | None:
        """Return a program that only root or this user can change: it runs unconfined.

        Programs of trials may be of this user, too: their directories are hidden ones.
        """
        path = find_program(program)
        if path is None:
            return None
        file, real = Path(path), Path(path).resolve()
        with suppress(OSError):
            is_ours = _is_ours(real, stat.S_IWGRP | stat.S_IWOTH) and not any(map(self._limits.hides, (file, real)))
            near = (file, *file.parents, *real.parents) if "/" in program else ()
            return path if is_ours and all(_is_ours(part, stat.S_IWOTH) for part in near) else None
        return None

    def version(self, program: str) -> str | None:
        if self.find(program) is None:
            return None
        return machine.mpi_version(program, {"PATH": search_path()})


def _is_ours(path: Path, foreign: int) -> bool:
    """Return whether a path or link is root's or ours, and closed to `foreign` users.

    In sticky directories, others replace only their own entries.
    """
    status = path.lstat()
    is_sticky = stat.S_ISDIR(status.st_mode) and bool(status.st_mode & stat.S_ISVTX)
    is_closed = stat.S_ISLNK(status.st_mode) or is_sticky or not status.st_mode & foreign
    return status.st_uid in (0, os.geteuid()) and is_closed


def _launch_programs(library: str) -> tuple[str, ...]:
    """Return names of a library's launch command; Hydra for MPICH's relatives."""
    return _PROGRAMS.get(library, _PROGRAMS["mpich"])


def _family(host: Host, program: str) -> str | None:
    return _LIBRARIES.get(launcher_of(host.version(program)) or "")


def _near_directories(loaded: Sequence[str]) -> list[Path]:
    """Return bin directories next to the libraries' lib and lib/release."""
    libraries = [Path(name) for name in loaded if name.startswith("/")]
    places = [above / "bin" for path in libraries for above in (path.parent.parent, path.parent.parent.parent)]
    return [directory for directory in dict.fromkeys(places) if directory not in _SYSTEM_PROGRAMS][:_MOST_NEAR]
