"""Captures that the tests make themselves."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.analysis.recordings.recording import record

# A ring of TCP messages of many sizes between 3 ranks: small enough to run in every test session.
MPI_COMMAND = [
    "mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "3", "--bind-to", "none",
    "--mca", "mpi_yield_when_idle", "1", "--mca", "pml", "ob1", "--mca", "btl", "tcp,self",
    "--mca", "btl_tcp_if_include", "lo", "--mca", "btl_tcp_port_min_v4", "20000", "--mca", "btl_tcp_port_range_v4", "64",
    "lmp", "-log", "none", "-var", "n", "4", "-var", "steps", "12", "-in", "in.water",
]  # fmt: skip
MPI_PORTS = (20000, 20063)

WATER = Path(__file__).parent / "data"


@pytest.fixture(scope="session")
def mpi_capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pcapng file of a real Open MPI run of LAMMPS on three ranks, snap length 128."""
    directory = tmp_path_factory.mktemp("mpi")
    for name in ("in.water", "water.mol"):
        (directory / name).write_bytes((WATER / name).read_bytes())
    command = ["sh", "-c", 'cd "$0" && exec "$@" > output 2>&1', str(directory), *MPI_COMMAND]
    return record(directory / "mpi.pcapng", command)


@pytest.fixture(scope="session")
def mpi_pcap(mpi_capture: Path) -> Path:
    """The same packets as a classic savefile with nanoseconds."""
    target = mpi_capture.with_suffix(".pcap")
    subprocess.run(["editcap", "-F", "nsecpcap", str(mpi_capture), str(target)], check=True, timeout=90)
    return target


COMPILED_S = 250
"""A minute of processor time, and processes of the suite may share it with whatever else runs."""


@pytest.fixture(scope="session")
def checked_kernels() -> dict[str, str]:
    """Return the environment of a program whose kernels check every index.

    The first program on a machine that needs these kernels waits for their compilation. The environment lacks the
    directory that ``analysis.kernels`` chose for this process: numba would take the unchecked kernels from there.
    """
    variables = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment = {**variables, "NUMBA_BOUNDSCHECK": "1"}
    with (Path(tempfile.gettempdir()) / f"rankwire-checked-kernels-{os.getuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # processes of one suite would each compile them
        subprocess.run([sys.executable, "-m", "analysis.warm_up"], env=environment, check=True, timeout=COMPILED_S)
    return environment
