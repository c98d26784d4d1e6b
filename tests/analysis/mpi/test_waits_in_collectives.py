"""Waits in collectives: who came last, and what follows from it."""

import pytest

from analysis.mpi import collectives
from analysis.mpi.wait_sums import ALL_RANKS, CAUSES, UNKNOWN_RANK
from tests.analysis.mpi.scenes import Scene, comm_of


def meeting(name, *spans, sizes=(0, 0, 0), scene=None):
    """A collective of ranks that come and leave at these times."""
    scene = scene or Scene(greeted=False)
    for rank, (began, ended) in enumerate(spans):
        scene.call(rank, name, began, ended, size=sizes[rank])
    return scene


def by_pair(scene):
    """Milliseconds of the causes of each pair, without those that are zero."""
    return {
        (pair.sender, pair.receiver): {
            name: round(1e3 * s, 6) for name, s in zip(CAUSES, pair.seconds, strict=True) if s
        }
        for pair in scene.explained().pairs
    }


@pytest.mark.parametrize("name", ["Barrier", "Allreduce", "Alltoall"])
def test_all_wait_for_the_rank_that_comes_last_and_then_for_the_transfer(name):
    causes = by_pair(meeting(name, (0, 101), (100, 103), (40, 102)))
    assert causes == {
        (1, 0): {"late_sender": 100},
        (1, 2): {"late_sender": 60},
        (ALL_RANKS, 0): {"under_way": 1},
        (ALL_RANKS, 1): {"under_way": 3},
        (ALL_RANKS, 2): {"under_way": 2},
    }


def test_each_wait_counts_once():
    waits = meeting("Barrier", (0, 101), (100, 103)).explained()
    assert {(pair.sender, pair.receiver): pair.waits for pair in waits.pairs} == {
        (1, 0): 1,
        (ALL_RANKS, 0): 0,
        (ALL_RANKS, 1): 1,
    }


def test_ranks_wait_for_the_root_that_hands_over_the_bytes():
    causes = by_pair(meeting("Bcast", (0, 52), (50, 51), (51.5, 51.9), sizes=(0, 800, 0)))
    assert causes[1, 0] == {"late_sender": 50}
    assert causes[ALL_RANKS, 0] == {"under_way": 0.5, "unknown": 1.5}  # the last rank may have passed it on
    assert causes[ALL_RANKS, 2] == {"under_way": 0.4}


def test_a_rank_that_leaves_before_the_last_has_come_did_not_wait_for_it():
    causes = by_pair(meeting("Reduce", (0, 30), (10, 11), (90, 91)))
    assert causes[1, 0] == {"late_sender": 10}
    assert (2, 0) not in causes


def test_an_unknown_root_is_not_guessed():
    scene = meeting("Bcast", (0, 52), (50, 51))
    assert by_pair(scene) == {(UNKNOWN_RANK, 0): {"unknown": 52}, (UNKNOWN_RANK, 1): {"unknown": 1}}
    assert scene.explained().unknown_s == {collectives.NO_ROOT: pytest.approx(0.053)}


@pytest.mark.parametrize(
    "scene",
    [
        meeting("Barrier", (0, 60), (70, 80)),
        meeting("Barrier", (0, 60), (50, 60), scene=meeting("Allreduce", (61, 61.01))),
        Scene(greeted=False).call(0, "Barrier", 0, 60).call(1, "Allreduce", 50, 60),
    ],
    ids=["one left before the other came", "not as many", "others"],
)
def test_ranks_that_met_in_parts_are_found_by_contradiction(scene):
    waits = scene.explained()
    assert set(waits.unknown_s) == {collectives.IN_PARTS}
    assert waits.share("unknown") == 1


def test_a_program_of_one_rank_waits_for_no_rank():
    assert Scene(greeted=False).call(0, "Barrier", 0, 60).explained().pairs == ()


def test_the_last_collectives_are_matched_where_traces_lost_their_first():
    scene = meeting("Barrier", (100, 200), (150, 200), scene=Scene(greeted=False).call(0, "Allreduce", 0, 50))
    scene.left_out[1] = 1
    causes = by_pair(scene)
    assert causes[1, 0] == {"late_sender": 50}
    assert causes[UNKNOWN_RANK, 0] == {"unknown": 50}


def test_only_the_members_of_a_communicator_wait_for_each_other():
    scene, (even, odd) = Scene(greeted=False), (comm_of(1, 2), comm_of(2, 2))
    scene.call(0, "Barrier", 0, 51, comm=even).call(2, "Barrier", 50, 51, comm=even)
    scene.call(1, "Allreduce", 10, 91, comm=odd).call(3, "Allreduce", 90, 91, comm=odd)
    causes = by_pair(scene)
    assert causes[2, 0] == {"late_sender": 50}
    assert causes[3, 1] == {"late_sender": 80}
    assert {pair for pair in causes if pair[0] >= 0} == {(2, 0), (3, 1)}


def test_collectives_of_several_communicators_are_distinguished():
    scene, (one, other) = Scene(greeted=False), (comm_of(1, 2), comm_of(2, 2))
    scene.call(0, "Ibarrier", 0, 0.1, comm=one).call(0, "Barrier", 1, 31, comm=one).call(
        0, "Barrier", 32, 62, comm=other
    )
    scene.call(1, "Barrier", 30, 31, comm=one).call(1, "Barrier", 60, 62, comm=other)
    assert by_pair(scene)[1, 0] == {"late_sender": 57}


@pytest.mark.parametrize(
    "comm", [0, comm_of(1, 0), comm_of(1, 3)], ids=["not reported", "two groups", "a member is missing"]
)
def test_nothing_is_guessed_of_a_communicator_whose_members_are_not_known(comm):
    scene = Scene(greeted=False).call(0, "Barrier", 0, 60, comm=comm).call(1, "Barrier", 50, 60, comm=comm)
    assert scene.explained().unknown_s == {collectives.IN_PARTS: pytest.approx(0.07)}


def test_a_rank_waits_for_no_rank_in_a_communicator_of_its_own():
    scene = Scene(greeted=False).call(0, "Barrier", 0, 60, comm=comm_of(1, 1)).call(1, "Send", 0, 1, peer=0)
    assert scene.explained().pairs == ()


def test_calls_that_one_communicator_lost_leave_the_others_whole():
    scene, (one, other) = Scene(greeted=False), (comm_of(1, 2), comm_of(2, 2))
    scene.call(0, "Barrier", 0, 60, comm=one)
    scene.call(0, "Barrier", 70, 100, comm=other).call(1, "Barrier", 90, 100, comm=other)
    scene.left_out[1] = 3
    causes = by_pair(scene)
    assert causes[UNKNOWN_RANK, 0] == {"unknown": 60}
    assert causes[1, 0] == {"late_sender": 20}
