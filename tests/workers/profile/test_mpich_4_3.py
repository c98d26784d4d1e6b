"""A program of MPICH's interface, counted under MPICH 4.3."""

from __future__ import annotations

from pathlib import Path

from tests.workers.profile import newer
from tests.workers.profile.counting import counted, sizes
from tests.workers.profile.ranks import built_with, run


def test_it_counts_what_the_program_says(tmp_path: Path) -> None:
    program = built_with(newer.mpich_library(), "mpich.c", tmp_path)
    ran = run([program], tmp_path, launcher=newer.mpich())
    assert ran.status == 0, ran.output
    assert "MPICH Version:" in ran.output
    assert "4.3." in ran.output  # not the system's, which has the same interface
    assert {profile.end for profile in ran.profiles.values()} == {"finalize"}
    assert counted(ran) == {(0, 1): (1, 80)}
    assert {rank: sum(counts) for rank, counts in sizes(ran).items()} == {0: 1, 1: 0}
    rows = {row.name: (row.calls, row.bytes) for row in ran.profiles[0].rows}
    assert rows == {"Comm_split": (1, 0), "Send": (1, 80), "Allreduce": (1, 80)}
