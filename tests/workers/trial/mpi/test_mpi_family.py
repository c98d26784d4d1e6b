"""A program that would run as n programs of one rank each fails before it starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from experiments.files import read_analysis
from experiments.models import State, Trial
from tests.workers.clusters.mpi_programs import hidden_in_script, mpi_program, sum_over_mpich
from workers.launchers import mpi_choice
from workers.trial.mpi_family import MPICH, OPEN_MPI, launcher_of, library_of, why_singletons


@pytest.mark.parametrize(
    ("libraries", "family"),
    [
        (["libc.so.6", "libmpi.so.40.30.4", "libopen-rte.so.40.30.2"], OPEN_MPI),
        (["libmpi.so.40"], OPEN_MPI),
        (["libmpi.so.20.10.1"], OPEN_MPI),
        (["libmpi.so.12.0.3", "libopen-pal.so.13.0.3"], OPEN_MPI),
        (["libmpi.so.12.1.8", "libmpifort.so.12.1.8"], MPICH),
        (["libmpi.so.12"], MPICH),
        (["libmpich.so.12.2.2"], MPICH),
        (["libmpichfort.so.12"], MPICH),
        (["libmpi.so", "libopen-pal.so"], OPEN_MPI),
        (["libmpi.so"], MPICH),
        (["libc.so.6", "libm.so.6"], None),
        ([], None),
    ],
)
def test_it_knows_a_library_by_the_files_that_a_program_loads(libraries: list[str], family: str | None) -> None:
    cases = library_of(libraries)
    assert (cases and cases[0]) == family


@pytest.mark.parametrize(
    ("version", "family"),
    [
        ("mpirun (Open MPI) 4.1.4", OPEN_MPI),
        ("Hydra 4.0.2", MPICH),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.9 Build 20230307", MPICH),
        ("prterun 3.0", None),
        (None, None),
    ],
)
def test_it_knows_a_launcher_by_its_version(version: str | None, family: str | None) -> None:
    assert launcher_of(version) == family


def sentence(libraries: list[str], mpi: str | None, ranks: int = 3, *, setting: bool = True) -> str | None:
    environment: dict[str, Any] = {"mpi": mpi, "program": {"libraries": libraries}}
    return why_singletons(environment, program="solver", ranks=ranks, setting=setting)


def test_it_reports_nothing_of_what_fits_or_is_not_known() -> None:
    assert sentence(["libmpi.so.40.30.4"], "mpirun (Open MPI) 4.1.4") is None
    assert sentence(["libmpi.so.12.1.8"], "Hydra 4.0.2") is None
    assert sentence(["libmpi.so.40.30.4"], "Hydra 4.0.2", ranks=1) is None
    assert sentence([], "Hydra 4.0.2") is None
    assert sentence(["libmpi.so.40"], None) is None
    assert why_singletons({"mpi": None, "program": None}, program="x", ranks=2, setting=False) is None


@pytest.mark.timeout(120)
def test_programs_of_both_libraries_run_on_the_test_bed(run_all: Callable[..., list[Trial]], open_path: Path) -> None:
    """Each library's launcher makes one world across the hosts, on the wire."""
    answer = [{"name": "sum", "regex": r"sum (\d+)", "at_least": 10, "at_most": 10}]
    script = hidden_in_script(open_path, f"exec {sum_over_mpich(open_path)}")
    request: dict[str, Any] = {"sweep": {"hosts": [2]}, "certificate": "skip", "retries": 0}
    (trial,) = run_all(
        workload="command", parameters={"program": [str(script)], "extract": answer, "ranks_per_host": 2}, **request
    )
    assert trial.state == State.FINISHED, trial.message
    assert trial.command[0] == "mpiexec.hydra"
    assert trial.environment.facts["mpi"].startswith("Hydra ")
    assert trial.conditions["world"].startswith("4 ranks in one world, as requested (libmpich"), trial.conditions[
        "world"
    ]
    assert trial.conditions["ranks_on"] == {"n1": "0-1", "n2": "2-3"}
    assert trial.measurements.get(scope="mpi", metric="packets").value > 0
    ranks = read_analysis(trial)["matrices"]["ranks"]
    assert (ranks["labels"], ranks["connections_without_ranks"] > 0) == ([], True)
    assert ranks["by_host_alone"].endswith("and several ranks ran on 10.77.0.1, 10.77.0.2")
    (other,) = run_all(
        workload="command", parameters={"program": [str(mpi_program(open_path, "libmpi.so.40"))]}, **request
    )
    assert (other.state, other.command[0]) == (State.FINISHED, "mpirun"), other.message


def test_a_program_of_mpich_runs_on_this_machine(run_all: Callable[..., list[Trial]], open_path: Path) -> None:
    (trial,) = run_all(
        workload="command",
        parameters={"program": [str(sum_over_mpich(open_path))], "ranks_per_host": 2},
        cluster="local",
    )
    assert trial.state == State.FINISHED, trial.message
    assert trial.conditions["world"].startswith("2 ranks in one world, as requested (libmpich")
    assert trial.measurements.get(scope="mpi", metric="packets").value > 0


def test_a_library_without_its_launch_command_is_reported(
    run_all: Callable[..., list[Trial]], open_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mpi_choice, "_PROGRAMS", {**mpi_choice._PROGRAMS, "mpich": ("mpiexec.nowhere",)})
    (trial,) = run_all(workload="command", parameters={"program": [str(sum_over_mpich(open_path))]}, cluster="local")
    assert trial.state == State.FAILED
    assert (
        "The launch command mpiexec.nowhere of the MPI library that the program was built for is not" in trial.message
    )
