"""The launch command follows the program's MPI library, or the settings."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.workers.clusters.mpi_programs import mpi_program, prefix_of_open_mpi
from workers.launchers.job import Job, Launch
from workers.launchers.limits import NO_USER, Limits
from workers.launchers.mpi_choice import chosen, chosen_here, usual

OPEN, HYDRA = "mpirun (Open MPI) 4.1.4", "Hydra 4.0.2"
BOTH = {"mpirun": OPEN, "mpiexec.hydra": HYDRA}
OPEN_FILES = ["/lib/x86_64-linux-gnu/libmpi.so.40", "libopen-rte.so.40"]
MPICH_FILES = ["/usr/lib/x86_64-linux-gnu/libmpich.so.12"]
INTEL_FILES = ["/opt/intel/mpi/2021.13/lib/libmpi.so.12"]
OLD_OPEN_FILES = ["libmpi.so.12", "libopen-pal.so.13"]


class Host:
    """One with these launch commands, which say this of themselves."""

    def __init__(self, programs: Mapping[str, str]) -> None:
        self.programs = programs

    def find(self, program: str) -> str | None:
        return program if program in self.programs else None

    def version(self, program: str) -> str | None:
        return self.programs.get(program)


@pytest.mark.parametrize(
    ("loaded", "programs", "launch"),
    [
        (OPEN_FILES, BOTH, Launch("openmpi", "mpirun")),
        (OLD_OPEN_FILES, BOTH, Launch("openmpi", "mpirun")),
        (MPICH_FILES, BOTH, Launch("mpich", "mpiexec.hydra")),
        (["libmpi.so.12"], BOTH, Launch("mpich", "mpiexec.hydra")),
        ([], BOTH, Launch("openmpi", "mpirun")),
        ([], {"mpirun": HYDRA}, Launch("mpich", "mpirun")),
        ([], {"mpiexec.hydra": HYDRA}, Launch("mpich", "mpiexec.hydra")),
        (OPEN_FILES, {"mpirun": HYDRA, "mpirun.openmpi": OPEN}, Launch("openmpi", "mpirun.openmpi")),
        (MPICH_FILES, {"mpirun": OPEN}, Launch("mpich", "mpiexec.hydra")),
        ([], {}, Launch("openmpi", "mpirun")),
    ],
)
def test_it_follows_the_library_of_the_program(
    loaded: Sequence[str], programs: Mapping[str, str], launch: Launch
) -> None:
    assert chosen(Host(programs), loaded) == launch


def test_launch_command_next_to_the_library_is_preferred() -> None:
    expected = "/opt/intel/mpi/2021.13/bin/mpiexec.hydra"
    host = Host({**BOTH, expected: "Intel(R) MPI Library for Linux* OS, Version 2021.13"})
    assert chosen(host, INTEL_FILES) == Launch("mpich", expected)
    assert chosen(Host(BOTH), INTEL_FILES) == Launch("mpich", "mpiexec.hydra")
    deep = ["/usr/lib64/openmpi/lib/libmpi.so.40"]
    assert chosen(Host({"/usr/lib64/openmpi/bin/mpirun": OPEN}), deep).program == "/usr/lib64/openmpi/bin/mpirun"
    system = Host({"/usr/bin/mpirun": OPEN, **BOTH})
    assert chosen(system, ["/usr/lib/libmpi.so.40"]).program == "mpirun"


def test_a_host_that_names_thousands_of_libraries_is_asked_a_few_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []
    monkeypatch.setattr(Host, "find", lambda _host, program: searched.append(program))
    chosen(Host(BOTH), [f"/opt/{number}/lib/libmpi.so.40" for number in range(5000)])
    assert len(searched) < 100


def test_what_the_settings_say_holds_against_the_program() -> None:
    host = Host(BOTH)
    assert chosen(host, OPEN_FILES, library_setting="intelmpi") == Launch("intelmpi", "mpiexec.hydra")
    assert chosen(host, MPICH_FILES, library_setting="openmpi", program="/opt/mpirun") == Launch(
        "openmpi", "/opt/mpirun"
    )
    named = Host({"/opt/mpich/bin/mpiexec": HYDRA})
    assert chosen(named, OPEN_FILES, program="/opt/mpich/bin/mpiexec") == Launch("mpich", "/opt/mpich/bin/mpiexec")


def test_it_takes_what_there_is_for_a_program_of_which_nothing_is_known() -> None:
    assert usual(Host({"mpirun": "prterun 3.0"})) == Launch("openmpi", "mpirun")


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    return prefix_of_open_mpi(tmp_path / "prefix")


def launch_with(prefix: Path, *hidden: Path) -> str:
    """Return the launch command of a program that loads the library of a prefix."""
    program = mpi_program(prefix.parent, "libmpi.so.40")
    variables = {"LD_LIBRARY_PATH": str(prefix / "lib")}
    limits = Limits(hidden=hidden)
    job = Job((str(program),), 1, 1, ("localhost",), prefix, prefix, environment=variables, limits=limits)
    launch = chosen_here(job).launch
    assert launch is not None
    return launch.program


def test_a_link_to_the_library_leads_nowhere_else_later(prefix: Path) -> None:
    link = prefix.with_name("link")
    link.symlink_to(prefix)
    assert launch_with(link) == str(prefix / "bin" / "mpirun")
    assert (prefix / "executed").exists()


def test_no_launch_command_that_others_can_write_is_executed(prefix: Path) -> None:
    (prefix / "bin" / "mpirun").chmod(0o1777)
    assert launch_with(prefix) == "mpirun"
    assert not (prefix / "executed").exists()


def test_no_launch_command_of_a_trial_is_executed_outside_of_its_sandbox(prefix: Path) -> None:
    assert launch_with(prefix, prefix.parent) == "mpirun"
    assert not (prefix / "executed").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="root is needed to give a directory to another user")
def test_no_launch_command_in_a_directory_of_another_user_is_executed(prefix: Path) -> None:
    os.chown(prefix, NO_USER, NO_USER)
    assert launch_with(prefix) == "mpirun"
    assert not (prefix / "executed").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="root is needed to give a link to another user")
def test_no_launch_command_behind_a_link_of_another_user_is_executed(prefix: Path) -> None:
    """It could lead elsewhere a moment later."""
    (prefix / "bin").rename(prefix / "real")
    (prefix / "bin").symlink_to("real")
    os.chown(prefix / "bin", NO_USER, NO_USER, follow_symlinks=False)
    prefix.chmod(0o1777)
    assert launch_with(prefix) == "mpirun"
    assert not (prefix / "executed").exists()
