"""Partners in a trace: senders of receives, communicators of collectives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.mpi.calls import NO_RANK, Calls, calls_of, members_of
from tests.analysis.mpi.pages import PLACES
from tests.workers.profile.ranks import MPICH, PROGRAMS, run

Program = Callable[[str], Path]


@pytest.fixture(scope="module")
def partners(tmp_path_factory: pytest.TempPathFactory) -> Calls:
    """Four ranks; even and odd ones have communicators in reverse order."""
    ran = run(["/usr/bin/python3", PROGRAMS / "partners.py"], tmp_path_factory.mktemp("ran"), ranks=4, level="trace")
    assert ran.status == 0, ran.output
    calls = calls_of(ran.profiles.values())
    assert calls is not None
    return calls


def reported(calls: Calls, rank: int, name: str, column: str) -> list[int]:
    rows = calls.of(rank)
    values: list[int] = rows[column][rows["function"] == PLACES[name]].tolist()
    return values


def test_a_receive_of_anyone_names_whom_it_took(partners: Calls) -> None:
    for rank in (2, 3):
        assert reported(partners, rank, "Recv", "source") == [rank - 2]
        assert reported(partners, rank, "Irecv", "source") == [rank - 2] * 3
        assert reported(partners, rank, "Mprobe", "source") == [rank - 2]


def test_an_exchange_names_both_partners(partners: Calls) -> None:
    for rank in range(4):
        assert reported(partners, rank, "Sendrecv", "source") == [(rank - 1) % 4, NO_RANK]
        assert reported(partners, rank, "Sendrecv", "peer") == [(rank + 1) % 4, -1]
        assert reported(partners, rank, "Sendrecv_replace", "source") == [(rank - 1) % 4]


def test_all_members_call_a_communicator_the_same(partners: Calls) -> None:
    for rank in (0, 1):
        half, twin, *others = reported(partners, rank, "Send", "comm")
        assert half != twin
        assert set(others) == {half}
        assert members_of(half) == members_of(twin) == 2
        assert reported(partners, rank + 2, "Recv", "comm") == [half]
        assert reported(partners, rank + 2, "Irecv", "comm") == [twin, half, half]
        for member in (rank, rank + 2):
            barriers = reported(partners, member, "Barrier", "comm")
            assert barriers[0] == half
            assert barriers[1] not in (half, twin)
            assert reported(partners, member, "Allreduce", "comm") == [twin]
    worlds = {comm for rank in range(4) for comm in reported(partners, rank, "Sendrecv_replace", "comm")}
    assert [members_of(comm) for comm in worlds] == [4]
    assert reported(partners, 0, "Send", "comm")[0] != reported(partners, 1, "Send", "comm")[0]


def test_it_reads_the_statuses_of_mpich(program: Program, tmp_path: Path) -> None:
    ran = run([program("mpich.c")], tmp_path, launcher=MPICH, level="trace")
    calls = calls_of(ran.profiles.values())
    assert calls is not None, ran.output
    assert reported(calls, 1, "Recv", "source") == [0]
    assert reported(calls, 1, "Recv", "comm") == reported(calls, 0, "Send", "comm")
