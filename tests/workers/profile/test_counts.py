"""Messages and bytes, against Open MPI's own monitoring component."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.workers.profile import monitoring
from tests.workers.profile.counting import counted, sizes
from tests.workers.profile.ranks import MPICH, OPEN_MPI, PROGRAMS, Ran, run

Program = Callable[[str], Path]


def monitored(argv: list[str | Path], place: Path, ranks: int) -> Ran:
    ran = run(argv, place, ranks=ranks, launcher=[*OPEN_MPI, *monitoring.options(place)])
    assert ran.status == 0, ran.output
    assert len(ran.profiles) == ranks
    return ran


@pytest.mark.parametrize(
    ("name", "ranks"), [("messages.c", 2), ("old.f90", 2), ("module.f90", 2), ("f08.f90", 2), ("pickled.py", 4)]
)
def test_it_counts_pairs_and_sizes_of_messages_as_the_library_does(
    name: str, ranks: int, program: Program, tmp_path: Path
) -> None:
    """Without collectives, whose own messages stand in the component's sizes."""
    argv: list[str | Path] = ["/usr/bin/python3", PROGRAMS / name] if name.endswith(".py") else [program(name)]
    ran = monitored([*argv, "plain"], tmp_path, ranks)
    seen = monitoring.seen(tmp_path)
    assert counted(ran) == {pair: row[:2] for pair, row in seen.items()}
    assert sizes(ran) == monitoring.sizes(seen)
    assert sum(messages > 0 for messages in np.sum([*sizes(ran).values()], axis=0)) >= 3


def test_every_way_to_send_a_message_besides_collectives_is_counted(program: Program, tmp_path: Path) -> None:
    ran = monitored([program("messages.c")], tmp_path, 4)
    seen = monitoring.seen(tmp_path)
    assert counted(ran) == {pair: row[:2] for pair, row in seen.items() if row[0]}
    ours, theirs = (np.sum([*counts.values()], axis=0) for counts in (sizes(ran), monitoring.sizes(seen)))
    assert ours.sum() == sum(row[0] for row in seen.values())
    assert (ours <= theirs).all()


def test_it_counts_what_a_persistent_request_sends_each_time(program: Program, tmp_path: Path) -> None:
    """Three rounds of Startall and one Start of 700 bytes, by the program."""
    ran = run([program("messages.c"), "persistent"], tmp_path, ranks=2)
    assert counted(ran) == {(0, 1): (4, 2800), (1, 0): (4, 2800)}


def test_it_names_world_ranks_across_an_intercommunicator(program: Program, tmp_path: Path) -> None:
    """The component counts what the library says to make one, too."""
    ran = run([program("messages.c"), "across"], tmp_path, ranks=4)
    assert counted(ran) == {(0, 1): (1, 300), (2, 3): (1, 300)}


def test_it_counts_what_ranks_hand_over_to_collectives(program: Program, tmp_path: Path) -> None:
    ran = run([program("messages.c")], tmp_path, ranks=4)
    carried = {
        row.name: row.bytes
        for row in ran.profiles[1].rows
        if row.bytes and row.name in ("Allreduce", "Bcast", "Alltoall")
    }
    assert carried == {"Allreduce": 256, "Bcast": 256, "Alltoall": 64}
    assert "Bcast" not in {row.name for row in ran.profiles[0].rows if row.bytes}


@pytest.mark.parametrize("language", [[], ["Fortran"]])
def test_it_counts_a_message_of_mpich_once_in_any_language(
    language: list[str], program: Program, tmp_path: Path
) -> None:
    ran = run([program("mpich.c"), *language], tmp_path, launcher=MPICH)
    assert ran.status == 0, ran.output
    assert counted(ran) == {(0, 1): (1, 80)}
    rows = {row.name: (row.calls, row.bytes) for row in ran.profiles[0].rows}
    assert rows == {"Comm_split": (1, 0), "Send": (1, 80), "Allreduce": (1, 80)}


def test_it_counts_every_kind_of_fortran_alike(program: Program, tmp_path: Path) -> None:
    calls = []
    for name in ("old.f90", "module.f90", "f08.f90"):
        directory = tmp_path / name
        directory.mkdir()
        ran = run([program(name)], directory)
        assert ran.status == 0, ran.output
        calls.append({row.name: (row.calls, row.bytes) for row in ran.profiles[0].rows})
    assert calls[0] == {"Irecv": (3, 0), "Send": (3, 372), "Wait": (3, 0), "Allreduce": (1, 400)}
    assert calls[1:] == [calls[0]] * 2
