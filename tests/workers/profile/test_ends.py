"""Programs that end badly: counts so far are stored, the end is the same."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.workers.clusters.mpi_programs import sum_over_mpich
from tests.workers.profile.ranks import LIMIT_S, MPICH, run

Program = Callable[[str], Path]


@pytest.mark.parametrize(
    ("how", "status", "ends", "inside"),
    [
        ("late", 0, ["finalize", "finalize"], ["", ""]),
        ("exec", 0, ["finalize", "finalize"], ["", ""]),
        ("fork", 0, ["finalize", "finalize"], ["", ""]),
        ("crash", 139, ["killed", "killed"], ["Recv", ""]),
        ("abort", 3, ["killed", "abort"], ["Recv", ""]),
    ],
)
def test_it_loses_nothing(
    how: str, status: int, ends: list[str], inside: list[str], program: Program, tmp_path: Path
) -> None:
    ran = run([program("ends.c"), how], tmp_path)
    assert (ran.status == 0) is (status == 0), ran.output
    profiles = [ran.profiles[rank] for rank in (0, 1)]
    assert [profile.end for profile in profiles] == ends
    assert [profile.inside for profile in profiles] == inside
    assert all("Barrier" in {row.name for row in profile.rows} for profile in profiles)
    assert all(0 < profile.call_cost_s < 1e-5 for profile in profiles), "a lost processor is no cost of counting"
    if inside[0]:
        assert 0.09 < profiles[0].mpi_s < profiles[0].window_s + 1e-9


def test_a_program_that_leaves_without_finalize_ends_its_window(program: Program, tmp_path: Path) -> None:
    ran = run([program("ends.c"), "exit"], tmp_path)
    assert {profile.end for profile in ran.profiles.values()} == {"killed"}
    assert all(0.1 < profile.useful_s < 5 for profile in ran.profiles.values())


def test_threads_count_without_losing_a_call(program: Program, tmp_path: Path) -> None:
    ran = run([program("ends.c"), "threads"], tmp_path)
    assert ran.status == 0, ran.output
    assert "no threads" not in ran.output
    for rank, profile in ran.profiles.items():
        calls = {row.name: row.calls for row in profile.rows}
        others = {row.name: row.calls for row in profile.of_others}
        assert (calls["Sendrecv_replace"], others["Sendrecv_replace"]) == (1000, 2000)
        assert profile.peers[1 - rank].tolist() == [3000, 12000]
        assert profile.window_s == pytest.approx(profile.useful_s + profile.mpi_s)


def test_a_program_may_have_parts_of_it_not_counted(program: Program, tmp_path: Path) -> None:
    ran = run([program("ends.c"), "quiet"], tmp_path)
    profile = ran.profiles[0]
    assert {row.name: row.calls for row in profile.rows}["Barrier"] == 2
    assert profile.window_s < 0.2


def test_a_program_without_mpi_leaves_nothing(program: Program, tmp_path: Path) -> None:
    ran = run([program("ends.c"), "no mpi"], tmp_path)
    assert (ran.status, ran.profiles) == (0, {})


def test_a_program_that_is_linked_statically_runs_as_ever_and_leaves_nothing(tmp_path: Path) -> None:
    source, alone = tmp_path / "alone.c", tmp_path / "alone"
    source.write_text('#include <stdio.h>\nint main(void) { puts("ran"); return 0; }\n')
    subprocess.run(["gcc", "-static", "-o", alone, source], check=True, timeout=LIMIT_S)
    ran = run([alone], tmp_path)
    assert (ran.status, ran.output.split(), ran.profiles) == (0, ["ran", "ran"], {})


def test_ranks_of_mpich_over_tcp_end_in_any_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without answers of waiting ranks half of the runs hang (pmodels/mpich#6596)."""
    monkeypatch.setenv("UCX_TLS", "tcp,self")
    monkeypatch.setenv("MPIR_CVAR_NOLOCAL", "1")
    program = sum_over_mpich(tmp_path)
    for attempt in range(6):
        directory = tmp_path / str(attempt)
        directory.mkdir()
        ran = run([program], directory, ranks=4, launcher=MPICH)
        assert ran.status == 0, ran.output
        assert [profile.end for profile in ran.profiles.values()] == ["finalize"] * 4
