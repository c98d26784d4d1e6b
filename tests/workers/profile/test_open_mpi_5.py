"""The same programs, counted under Open MPI 5."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.workers.profile import monitoring, newer
from tests.workers.profile.counting import counted
from tests.workers.profile.ranks import PROGRAMS, run


@pytest.mark.parametrize("name", ["messages.c", "pickled.py"])
def test_it_counts_every_pair_as_the_library_does(name: str, program: Callable[[str], Path], tmp_path: Path) -> None:
    argv: list[str | Path] = ["/usr/bin/python3", PROGRAMS / name] if name.endswith(".py") else [program(name)]
    ran = run(argv, tmp_path, ranks=4, launcher=[*newer.open_mpi(), *monitoring.options(tmp_path)])
    assert ran.status == 0, ran.output
    assert {profile.end for profile in ran.profiles.values()} == {"finalize"}
    assert counted(ran) == {pair: row[:2] for pair, row in monitoring.seen(tmp_path).items() if row[0]}
    assert "Open MPI v5" in ran.output  # not the system's, which has the same interface
