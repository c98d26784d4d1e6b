"""Small programs of one MPI library or the other, built by the test that needs them."""

from __future__ import annotations

import subprocess
from pathlib import Path

_SOURCE = """
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
    source, program = directory / "alone.c", directory / f"alone-{library_name.partition('.')[0]}"
    source.write_text(_SOURCE)
    subprocess.run(["gcc", "-o", str(program), str(source), str(library(library_name))], check=True)
    return program


def hidden_in_script(directory: Path, *lines: str) -> Path:
    """A shell script: what it starts is not known before it runs."""
    script = directory / "run.sh"
    script.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    script.chmod(0o755)
    return script
