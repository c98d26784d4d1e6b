"""Times against the program's own clocks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.mpi import profile as mpi_profile
from tests.workers.profile.ranks import run

Program = Callable[[str], Path]


@pytest.mark.parametrize(
    ("work", "below"),
    [
        (("20", "10"), "mpi_load_balance"),
        (("turns", "20"), "mpi_communication_efficiency"),
        (("volume", "4"), "mpi_communication_efficiency"),
    ],
    ids=["imbalance of two to one", "serialisation", "volume"],
)
def test_it_sees_efficiencies_as_the_program_does(
    work: tuple[str, ...], below: str, program: Program, tmp_path: Path
) -> None:
    ran = run([program("clocks.c"), *work], tmp_path)
    rows = [line.split() for line in ran.output.splitlines() if line[:2] in ("0 ", "1 ")]
    answer = {int(rank): (float(window_s), float(inside_s)) for rank, window_s, inside_s in rows}
    assert len(answer) == 2, ran.output
    profiles = [ran.profiles[rank] for rank in (0, 1)]
    for rank, profile in enumerate(profiles):
        window_s, inside_s = answer[rank]
        assert profile.window_s == pytest.approx(window_s, rel=0.02)
        assert profile.mpi_s == pytest.approx(inside_s, rel=0.02, abs=0.002)
        assert sum(profile.bins) == pytest.approx(profile.mpi_s, rel=0.01)
    useful = [window_s - inside_s for window_s, inside_s in answer.values()]
    measured = mpi_profile.metrics(profiles)
    assert measured["mpi_load_balance"] == pytest.approx(sum(useful) / 2 / max(useful), rel=0.02)
    assert measured["mpi_parallel_efficiency"] == pytest.approx(
        sum(useful) / 2 / max(window_s for window_s, _ in answer.values()), rel=0.02
    )
    assert measured[below] < 0.95
