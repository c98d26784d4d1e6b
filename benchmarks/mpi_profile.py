"""Overhead of the MPI profile: `python -m benchmarks.mpi_profile`.

What it adds to a run of water on four hosts: `python -m benchmarks.orchestration --only profile`.

Nanoseconds per call in a tight loop of MPI_Iprobe with and without the library, least of several runs of each in turn.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from workers.profile.library import library

_CALLS: Final = 2_000_000
_ROUNDS: Final = 5
_PROGRAM: Final = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **words) {
    long calls = atol(words[1]);
    int there;
    MPI_Init(&count, &words);
    double began = MPI_Wtime();
    for (long i = 0; i < calls; i++) MPI_Iprobe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
    printf("%.1f\\n", 1e9 * (MPI_Wtime() - began) / calls);
    MPI_Finalize();
    return 0;
}
"""


def main() -> None:
    """Print both and the difference."""
    with tempfile.TemporaryDirectory() as directory:
        program = Path(directory, "loop")
        program.with_suffix(".c").write_text(_PROGRAM)
        subprocess.run(["mpicc.openmpi", "-O2", "-o", program, program.with_suffix(".c")], check=True)
        times: dict[str, list[float]] = {"none": [], "summary": [], "trace": []}
        for number in range(_ROUNDS):
            for level, seen in times.items():
                seen.append(_ns_per_call(program, level, Path(directory, f"{level}-{number}.mpi")))
    for level, seen in times.items():
        print(f"{level}: {min(seen):.1f} ns per call, {min(seen) - min(times['none']):+.1f} ns")


def _ns_per_call(program: Path, level: str, file: Path) -> float:
    counting = {"LD_PRELOAD": str(library()), "RANKWIRE_MPI_PROFILE": f"{level}:{file}"}
    variables = {**os.environ, **(counting if level != "none" else {})}
    done = subprocess.run([program, str(_CALLS)], env=variables, check=True, capture_output=True, text=True)
    return float(done.stdout)


if __name__ == "__main__":
    main()
