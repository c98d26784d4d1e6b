"""Counters outside MPI: of the kernel, and of a stand-in of a processor."""

from __future__ import annotations

import errno
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.mpi.counters import counter_metrics
from tests.workers.clusters.mpi_programs import library as library_of_this_machine
from tests.workers.profile.counting import OTHERS, PAGES
from tests.workers.profile.ranks import LIMIT_S, MPICH, OPEN_MPI, PROGRAMS, Ran, built_with, run

Program = Callable[[str], Path]


@pytest.fixture
def processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Load the stand-in of a processor's counters behind the profile library."""
    library = tmp_path / "pmu.so"
    words = ["gcc", "-O1", "-shared", "-fPIC", "-o", library, PROGRAMS / "pmu.c", "-ldl"]
    subprocess.run(words, check=True, timeout=LIMIT_S)
    monkeypatch.setenv("LD_PRELOAD", str(library))
    return lambda lack: monkeypatch.setenv("PMU", lack)


def metrics(ran: Ran) -> tuple[dict[str, float], dict[str, str]]:
    assert len(ran.profiles) == 2, ran.output
    return counter_metrics([(rank, profile.counters) for rank, profile in sorted(ran.profiles.items())])


@pytest.mark.parametrize("how", ["", "thread", "child", "exit", "again"])
def test_counters_hold_what_one_thread_does_outside_mpi(how: str, program: Program, tmp_path: Path) -> None:
    ran = run([program("faults.c"), how], tmp_path)
    assert set(metrics(ran)[0]) == {"processor_page_faults", "processor_cpu_s", "processor_counted_share"}
    for profile in ran.profiles.values():
        # A fork has its parent copy pages; skipped pieces are short and hold fewer faults than the others.
        copied = {"child": 20, "again": 3}.get(how, 1) * OTHERS
        assert PAGES <= profile.counters.values["page_faults"] <= PAGES + copied
        # The two clocks differed by 2 to 6 ms of 4 to 12 on a slow virtual machine.
        assert 0.6 * profile.computing_s < profile.counters.values["cpu_s"] < 1.4 * profile.computing_s + 0.01
        assert profile.counters.counted_share == pytest.approx(1.0, abs=0.05)
        assert 0 < profile.counters.cost_s < 0.01 * profile.window_s + 1e-3


def test_counters_of_mpich_and_fortran_are_the_same(program: Program, tmp_path: Path) -> None:
    of_mpich = built_with(library_of_this_machine("libmpich.so.12"), "faults.c", tmp_path)
    for name, argv, launcher in (("mpich", of_mpich, MPICH), ("fortran", program("faults.f90"), OPEN_MPI)):
        directory = tmp_path / name
        directory.mkdir()
        ran = run([argv], directory, launcher=launcher)
        metrics(ran)
        for profile in ran.profiles.values():
            assert PAGES <= profile.counters.values["page_faults"] <= PAGES + OTHERS


def test_nothing_is_read_from_a_file_that_the_program_opened_instead(program: Program, tmp_path: Path) -> None:
    ran = run([program("faults.c"), "files"], tmp_path)
    measured, absent = metrics(ran)
    assert ran.output.count("at 0") == 2
    assert not measured
    assert absent["processor_page_faults"] == "the program closed the files of the counters"


def test_a_rank_with_many_small_calls_is_not_counted(program: Program, tmp_path: Path) -> None:
    ran = run([program("faults.c"), "calls"], tmp_path)
    measured, absent = metrics(ran)
    assert not measured
    assert all("more than 1 % of the time between" in reason for reason in absent.values())
    for profile in ran.profiles.values():
        assert profile.counters.cost_s <= 0.0101 * profile.window_s + 1e-3


def test_a_processor_gives_instructions_cycles_and_frequency(
    processor: Callable[[str], None], program: Program, tmp_path: Path
) -> None:
    measured, absent = metrics(run([program("faults.c")], tmp_path))
    pages = measured["processor_page_faults"]
    assert not absent
    assert measured["processor_instructions"] == pytest.approx(3000 * pages)
    assert measured["processor_cycles"] == pytest.approx(1500 * pages)
    assert measured["processor_cache_misses"] == pytest.approx(6 * pages)
    assert measured["processor_ipc"] == pytest.approx(2.0)
    assert measured["processor_frequency_hz"] == pytest.approx(1500 * pages / measured["processor_cpu_s"])


def test_counts_of_shared_counters_are_scaled(
    processor: Callable[[str], None], program: Program, tmp_path: Path
) -> None:
    processor("half")
    measured, _ = metrics(run([program("faults.c")], tmp_path))
    assert measured["processor_counted_share"] == pytest.approx(0.5, abs=0.02)
    assert 2 * 3000 * PAGES <= measured["processor_instructions"] <= 2 * 3000 * (PAGES + OTHERS) * 1.02
    assert measured["processor_ipc"] == pytest.approx(2.0, rel=0.01)


@pytest.mark.parametrize(
    ("lack", "gone", "reason"),
    [
        ("misses", {"processor_cache_misses"}, "no hardware counters here"),
        (f"errno {errno.EACCES}", None, "kernel.perf_event_paranoid is "),
        (f"errno {errno.ENOSYS}", None, "a filter of system calls refuses it"),
        (f"errno {errno.EMFILE}", None, "may open no more files"),
    ],
)
def test_a_counter_that_is_absent_has_its_reason(
    lack: str,
    gone: set[str] | None,
    reason: str,
    processor: Callable[[str], None],
    program: Program,
    tmp_path: Path,
) -> None:
    processor(lack)
    measured, absent = metrics(run([program("faults.c")], tmp_path))
    assert set(absent) == (gone or set(absent) | set(measured))
    assert all(reason in why for why in absent.values())
