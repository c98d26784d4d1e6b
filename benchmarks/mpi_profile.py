"""Overhead of the MPI profile: `python -m benchmarks.mpi_profile`.

What it adds to a run of water on four hosts: `python -m benchmarks.orchestration --only profile`.

Nanoseconds per call in a loop of MPI_Iprobe with and without the library, and without its counters, least of several runs of
each in turn; and in loops that compute between calls the share of the run that readings of the counters took.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from analysis.mpi.record import read
from workers.profile.library import library

_CALLS: Final = 2_000_000
_ROUNDS: Final = 5
_COMPUTING_US: Final = (30, 100, 300, 1000)
_COMPUTING_S: Final = 2.0
"""Length of a run that computes between calls."""
_PROGRAM: Final = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **words) {
    long calls = atol(words[1]);
    double piece = atof(words[2]);
    int there;
    MPI_Init(&count, &words);
    double began = MPI_Wtime();
    for (long i = 0; i < calls; i++) {
        if (piece) for (double end = MPI_Wtime() + piece; MPI_Wtime() < end;);
        MPI_Iprobe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
    }
    printf("%.1f\\n", 1e9 * (MPI_Wtime() - began) / calls);
    MPI_Finalize();
    return 0;
}
"""
_NO_COUNTERS: Final = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/syscall.h>
long syscall(long number, ...) {
    long a[6];
    va_list words;
    va_start(words, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(words, long);
    va_end(words);
    if (number == SYS_perf_event_open) return errno = ENOSYS, -1;
    return ((long (*)(long, ...))dlsym(RTLD_NEXT, "syscall"))(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
"""


def main() -> None:
    """Print both and the difference."""
    with tempfile.TemporaryDirectory() as directory:
        program = Path(directory, "loop")
        program.with_suffix(".c").write_text(_PROGRAM)
        subprocess.run(["mpicc.openmpi", "-O2", "-o", program, program.with_suffix(".c")], check=True)
        without = program.with_name("without.so")
        without.with_suffix(".c").write_text(_NO_COUNTERS)
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", without, without.with_suffix(".c"), "-ldl"], check=True)
        times: dict[str, list[float]] = {"none": [], "summary, no counters": [], "summary": [], "trace": []}
        for number in range(_ROUNDS):
            for name, seen in times.items():
                level, _, less = name.partition(", ")
                file = program.with_name(f"{name}-{number}.mpi")
                seen.append(_ns_per_call(program, level, file, more=f":{without}" if less else ""))
        for name, seen in times.items():
            print(f"{name}: {min(seen):.1f} ns per call, {min(seen) - min(times['none']):+.1f} ns")
        for piece_us in _COMPUTING_US:
            file = program.with_name(f"{piece_us}.mpi")
            _ns_per_call(program, "summary", file, calls=int(1e6 * _COMPUTING_S / piece_us), piece_s=piece_us / 1e6)
            profile = read(file.read_bytes())
            share = profile.counters.cost_s / profile.window_s
            counted = profile.counters.counted_share or f"absent: {profile.counters.missing['page_faults']}"
            print(f"{piece_us} us between calls: readings {share:.2%} of the run, counted {counted}")


def _ns_per_call(
    program: Path, level: str, file: Path, *, more: str = "", calls: int = _CALLS, piece_s: float = 0.0
) -> float:
    counting = {"LD_PRELOAD": f"{library()}{more}", "RANKWIRE_MPI_PROFILE": f"{level}:{file}"}
    variables = {**os.environ, **(counting if level != "none" else {})}
    argv = [str(program), str(calls), str(piece_s)]
    done = subprocess.run(argv, env=variables, check=True, capture_output=True, text=True)
    return float(done.stdout)


if __name__ == "__main__":
    main()
