"""Calls of a trial become actions of a replay, or a sentence says why not."""

from __future__ import annotations

import itertools

import pytest

from analysis.replay.actions import traces
from analysis.replay.errors import NotReplayable
from tests.analysis.replay.scenes import calls_of, one_after_another


def actions(*events, rank=0):
    return [line.split(" ", 1)[1] for line in traces(calls_of(itertools.chain(*events))).lines[rank]]


def test_time_between_calls_is_computing_and_every_receive_has_the_bytes_of_its_message():
    events = one_after_another(0, ("Send", 1, 800)), one_after_another(1, ("Recv", 0, 0))
    assert actions(*events) == ["init", "send 1 0 800", "finalize"]
    assert actions(*events, rank=1) == ["init", "recv 0 0 800", "finalize"]
    events = (
        one_after_another(0, ("Barrier", -1, 0), ("Send", 1, 8)),
        one_after_another(1, ("Barrier", -1, 0), ("Recv", 0, 0)),
    )
    assert actions(*events)[2] == "compute 1000000"
    assert traces(calls_of(itertools.chain(*events))).window_s == pytest.approx(3e-3)


def test_requests_end_in_their_order_and_what_is_open_at_the_end_is_waited_for():
    called = [("Irecv", 1, 0), ("Isend", 1, 70), ("Irecv", 1, 0), ("Wait", -1, 0), ("Waitall", -1, 0), ("Isend", 1, 9)]
    other = [("Isend", 0, 5), ("Isend", 0, 6), ("Recv", 0, 0), ("Recv", 0, 0), ("Waitall", -1, 0)]
    lines = [
        line
        for line in actions(one_after_another(0, *called), one_after_another(1, *other))
        if not line.startswith("compute")
    ]
    assert lines == [
        "init", "irecv 1 2 5", "isend 1 0 70", "irecv 1 3 6", "wait 1 0 2", "waitall 2", "isend 1 1 9", "waitall 1", "finalize",
    ]  # fmt: skip


def test_receive_from_any_source_takes_the_earliest_message():
    events = [
        one_after_another(0, ("Recv", -1, 0), ("Recv", -1, 0), ("Recv", -1, 0)),
        [(1, "Send", 0, 11, 500, 600)],
        [(2, "Send", 0, 22, 100, 200), (2, "Send", 0, 23, 3_000_000, 3_000_100)],
    ]
    lines = [line for line in actions(*events) if line.startswith("recv")]
    assert lines == ["recv 2 1 22", "recv 1 0 11", "recv 2 2 23"]


def test_an_exchange_at_the_end_of_a_chain_receives_nothing():
    events = [
        one_after_another(0, ("Sendrecv", 1, 4)),
        one_after_another(1, ("Sendrecv", 2, 4)),
        one_after_another(2, ("Sendrecv", -1, 0)),
    ]
    assert actions(*events) == ["init", "send 1 0 4", "finalize"]
    assert actions(*events, rank=1)[-4:] == ["irecv 0 0 4", "send 2 1 4", "wait 0 1 0", "finalize"]
    assert actions(*events, rank=2)[-2:] == ["recv 1 1 4", "finalize"]


def test_collectives_carry_what_the_ranks_handed_over_from_the_root_that_did():
    called = [
        ("Bcast", -1, 0),
        ("Allreduce", -1, 80),
        ("Alltoall", -1, 400),
        ("Allgatherv", -1, 8),
        ("Comm_split", -1, 0),
    ]
    root = [("Bcast", -1, 1000), *called[1:3], ("Allgatherv", -1, 16), *called[4:]]
    lines = [
        line
        for line in actions(one_after_another(0, *called), one_after_another(1, *root))
        if not line.startswith("compute")
    ]
    assert lines[1:-1] == ["bcast 1000 1", "allreduce 80 0", "alltoall 200 200", "allgatherv 8 8 16", "barrier"]
    made = traces(calls_of(one_after_another(0, *called) + one_after_another(1, *root)))
    assert made.assumed == ("Making a communicator is replayed as a barrier.",)


def test_uneven_parts_are_replayed_as_equal_with_a_note():
    called = [("Alltoallv", -1, 100), ("Reduce_scatter", -1, 60), ("Scan", -1, 8)]
    events = one_after_another(0, *called) + one_after_another(1, ("Alltoallv", -1, 300), *called[1:])
    made = traces(calls_of(events))
    assert made.lines[1][1::2] == ("1 alltoall 100 100", "1 reducescatter 30 30 0", "1 allreduce 8 0")
    assert len(made.assumed) == 2


@pytest.mark.parametrize(
    ("calls", "sentence"),
    [
        ((one_after_another(0, ("Put", -1, 8)), one_after_another(1, ("Barrier", -1, 0))), "MPI_Put (1 call)"),
        ((one_after_another(0, ("Iprobe", 1, 0)), one_after_another(1, ("Test", -1, 0))), "MPI_Iprobe (1 call), MPI_Test"),
        ((one_after_another(0, ("Recv", 1, 0)), one_after_another(1, ("Barrier", -1, 0))), "Rank 0 receives more messages from rank 1"),
        ((one_after_another(0, ("Send", 1, 8)), one_after_another(1, ("Wait", -1, 0))), "no receive for 1 of the messages"),
        ((one_after_another(0, ("Barrier", -1, 0)), one_after_another(1, ("Wait", -1, 0))), "different collective operations"),
        (([(0, "Barrier", -1, 0, 0, 10)], [(1, "Barrier", -1, 0, 9_000_000, 9_000_010)]), "returned from MPI_Barrier before another"),
        ((one_after_another(0, ("Barrier", -1, 0)),), "at least two ranks"),
    ],
)  # fmt: skip
def test_unsupported_calls_are_refused_with_a_reason(calls, sentence):
    with pytest.raises(NotReplayable) as refused:
        traces(calls_of(itertools.chain(*calls)))
    assert sentence in str(refused.value)


def test_a_trace_that_lost_its_beginning_is_refused():
    events = one_after_another(0, ("Barrier", -1, 0)) + one_after_another(1, ("Barrier", -1, 0))
    with pytest.raises(NotReplayable, match="3 calls did not fit"):
        traces(calls_of(events, {0: 0, 1: 3}))
