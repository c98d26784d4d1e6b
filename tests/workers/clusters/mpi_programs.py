"""Small programs of one MPI library or the other, built by their test."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

_SUM = """
typedef int handle;
int MPI_Init(int *, char ***);
int MPI_Comm_rank(handle, int *);
int MPI_Comm_size(handle, int *);
int MPI_Allreduce(const void *, void *, int, handle, handle, handle);
int MPI_Finalize(void);
int printf(const char *, ...);
int fflush(void *);
int main(int count, char **words) {
    handle world = 0x44000000, integer = 0x4c000405, sum = 0x58000003;  /* of mpi.h; stable, as its interface is */
    int rank, size, total;
    MPI_Init(&count, &words);
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &size);
    rank += 1;
    MPI_Allreduce(&rank, &total, 1, integer, sum, world);
    printf("rank %d of %d, sum %d\\n", rank - 1, size, total);
    fflush(0);
    return MPI_Finalize();
}
"""
_EXCHANGE = """
typedef int handle;
int MPI_Init(int *, char ***);
int MPI_Comm_rank(handle, int *);
int MPI_Comm_size(handle, int *);
int MPI_Sendrecv(const void *, int, handle, int, int, void *, int, handle, int, int, handle, void *);
int MPI_Finalize(void);
static char out[1000000], in[1000000];
int main(int count, char **words) {
    handle world = 0x44000000, byte = 0x4c00010d;  /* of mpi.h; stable, as its interface is */
    int rank, size, other, round;
    MPI_Init(&count, &words);
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &size);
    other = size - 1 - rank;
    for (round = 0; round < 3; round++)
        MPI_Sendrecv(out, sizeof out, byte, other, 0, in, sizeof in, byte, other, 0, world, (void *)1);
    return MPI_Finalize();
}
"""
_ALONE = """
int MPI_Init(int *, char ***);
int MPI_Finalize(void);
int printf(const char *, ...);
int usleep(unsigned);
int main(int count, char **words) {
    MPI_Init(&count, &words);
    printf("alive\\n");
    usleep(100000);
    return MPI_Finalize();
}
"""


def library(name: str) -> Path:
    """An MPI library of this machine, in the folder of its architecture."""
    return next(Path("/usr/lib").glob(f"*/{name}"), Path(name))


def mpi_program(directory: Path, library_name: str) -> Path:
    """Build a program that initialises MPI, says "alive", and ends."""
    return _built(directory / f"alone-{library_name.partition('.')[0]}", _ALONE, library_name)


def prefix_of_open_mpi(directory: Path) -> Path:
    """Install a library beside a launch command that leaves the file `executed`."""
    for name in ("bin", "lib"):
        (directory / name).mkdir(parents=True)
    shutil.copy(library("libmpi.so.40").resolve(), directory / "lib" / "libmpi.so.40")
    command = directory / "bin" / "mpirun"
    command.write_text(f"#!/bin/sh\ntouch {directory}/executed\necho 'mpirun (Open MPI) 4.1.4'\n")
    command.chmod(0o755)
    return directory


def _built(program: Path, text: str, library_name: str) -> Path:
    source = program.with_suffix(".c")
    source.write_text(text)
    subprocess.run(["gcc", "-o", str(program), str(source), str(library(library_name))], check=True)
    return program


def sum_over_mpich(directory: Path) -> Path:
    """Build a program of MPICH in which all ranks add up their numbers."""
    return _built(directory / "sum", _SUM, "libmpich.so.12")


def exchange_over_mpich(directory: Path) -> Path:
    """Build a program of MPICH in which ranks exchange 3 MB, the first with the last."""
    return _built(directory / "exchange", _EXCHANGE, "libmpich.so.12")


def hidden_in_script(directory: Path, *lines: str) -> Path:
    """A shell script: what it starts is not known before it runs."""
    script = directory / "run.sh"
    script.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    script.chmod(0o755)
    return script
