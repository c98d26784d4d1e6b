"""The library separates descheduled ranks from ranks that sleep."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from analysis.mpi.profile import metrics
from analysis.mpi.record import RankProfile, read
from workers.profile.library import library

PROGRAM = """\
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static double used(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}
int main(int count, char **words) {
    int sleeps = atoi(words[1]), core = atoi(words[2]);
    cpu_set_t one;
    MPI_Init(&count, &words);
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
    MPI_Barrier(MPI_COMM_WORLD);
    if (sleeps) for (int i = 0; i < 40; i++) usleep(10000);
    else for (double end = used() + 0.4; used() < end;);
    MPI_Finalize();
    return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("run-delay") / "program"
    built.with_suffix(".c").write_text(PROGRAM)
    subprocess.run(["mpicc.openmpi", "-O2", "-o", built, built.with_suffix(".c")], check=True)
    return built


def profiles(program: Path, *, sleeps: bool) -> list[RankProfile]:
    """Of two ranks that share a core."""
    for file in program.parent.glob("*.mpi"):
        file.unlink()
    profile = f"LD_PRELOAD={library()} RANKWIRE_MPI_PROFILE=summary:{program.parent}/$OMPI_COMM_WORLD_RANK.mpi"
    core = min(os.sched_getaffinity(0))
    launch = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", "2"]
    command = f"{profile} exec {program} {int(sleeps)} {core}"
    subprocess.run([*launch, "sh", "-c", command], check=True, timeout=60, capture_output=True)
    return [read((program.parent / f"{rank}.mpi").read_bytes()) for rank in range(2)]


def test_ranks_that_share_a_core_are_descheduled(program: Path) -> None:
    ranks = profiles(program, sleeps=False)

    shares = metrics(ranks)

    assert shares["mpi_descheduled_share"] + shares["mpi_descheduled_inside_share"] > 0.4
    assert shares["mpi_descheduled_share"] > 0.9 * shares["mpi_no_core_share"]
    assert all(rank.computing_s == pytest.approx(0.4, abs=0.1) for rank in ranks)


def test_ranks_that_sleep_are_blocked(program: Path) -> None:
    shares = metrics(profiles(program, sleeps=True))

    assert shares["mpi_blocked_outside_share"] > 0.5
    total = (
        "mpi_useful_share",
        "mpi_descheduled_share",
        "mpi_blocked_outside_share",
        "mpi_on_cpu_share",
        "mpi_blocked_share",
    )
    assert sum(shares[name] for name in total) == pytest.approx(1.0)
