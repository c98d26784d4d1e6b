"""Programs that use MPI, under the rank wrapper with the profile library."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis.mpi.record import RankProfile, read
from tests.workers.clusters.mpi_programs import library as library_of_this_machine
from workers.launchers.job import PYTHON, WRAPPER, Profile
from workers.profile.library import library

PROGRAMS = Path(__file__).parent / "programs"
COMPILERS = {".c": "mpicc.openmpi", ".f90": "mpifort.openmpi"}
MPICH = ("mpiexec.mpich",)
OPEN_MPI = ("mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--mca", "btl", "self,vader")
LIMIT_S = 60


@dataclass
class Ran:
    """Output and rank reports of a run."""

    status: int
    output: str
    profiles: dict[int, RankProfile]


def built(name: str, into: Path) -> Path:
    source = PROGRAMS / name
    program = into / source.stem
    if not program.exists():
        linked: list[Path] = []
        words = [COMPILERS[source.suffix], "-O1", *(["-pthread"] if source.suffix == ".c" else [])]
        if name == "mpich.c":
            words = ["gcc"]
            linked = [library_of_this_machine("libmpich.so.12"), library_of_this_machine("libmpichfort.so.12")]
        subprocess.run([*words, "-o", program, source, *linked], check=True, timeout=LIMIT_S)
    return program


def built_with(library: Path, name: str, into: Path) -> Path:
    """Build a program of MPICH's interface with any C library of its family."""
    program = into / f"{Path(name).stem}-{library.name}"
    finds_it = f"-Wl,-rpath,{library.parent}"
    words = ["gcc", "-DC_ALONE", "-o", program, PROGRAMS / name, library, finds_it]
    subprocess.run(words, check=True, timeout=LIMIT_S)
    return program


def run(
    argv: Sequence[str | Path],
    place: Path,
    *,
    ranks: int = 2,
    launcher: Sequence[str] = OPEN_MPI,
    level: str = "summary",
) -> Ran:
    reports = place / "ranks"
    reports.mkdir()
    profile = Profile(level, library())
    wrapper = [PYTHON, "-I", "-S", WRAPPER, f"--mpi-profile={profile.level}:{profile.library}", reports]
    done = subprocess.run(
        [*launcher, "-np", str(ranks), *wrapper, *argv],
        cwd=place, capture_output=True, text=True, timeout=LIMIT_S, check=False,
        env={**os.environ, "OMPI_MCA_rmaps_base_oversubscribe": "1"},
    )  # fmt: skip
    profiles = {}
    for file in reports.glob("rank-*.mpi"):
        report = file.with_suffix(".json")
        ended = json.loads(report.read_text())["ended_ns"] if report.exists() else None
        profile_of_rank = read(file.read_bytes(), killed_ns=ended)
        profiles[profile_of_rank.rank] = profile_of_rank
    return Ran(done.returncode, done.stdout + done.stderr, profiles)
