"""Waits for ranks without packets: the order of calls shows the time of sending."""

import random

import pytest

from analysis.mpi import waits
from tests.analysis.mpi.scenes import Scene, comm_of

TOGETHER = {0: "n1", 1: "n1"}
APART = {0: "n1", 1: "n2"}


def scene():
    return Scene(greeted=False)


def test_on_one_host_a_receive_is_late_until_the_send_and_the_rest_is_the_way():
    seen = scene().call(1, "Recv", 10, 60, peer=0).call(0, "Send", 55, 60, peer=1, size=1 << 20)
    assert seen.causes(hosts=TOGETHER) == {"late_sender": 45, "under_way": 5}


def test_messages_on_each_others_heels_are_not_taken_for_late_ones():
    """The sender begins the second shortly before its receiver has the first."""
    seen = scene()
    for number in range(3):
        at = 10 * number
        seen.call(0, "Send", at + 1, at + 10.9, peer=1, size=1 << 20).call(1, "Recv", at + 2, at + 11.2, peer=0)
    assert seen.causes(hosts=TOGETHER) == {"under_way": pytest.approx(27.6)}


def test_a_wait_is_for_the_last_of_its_messages_that_was_sent_meanwhile():
    seen = scene().call(1, "Irecv", 1, 1.01, peer=0).call(1, "Irecv", 2, 2.01, peer=0).call(1, "Waitall", 3, 50)
    seen.call(0, "Isend", 20, 20.1, peer=1, size=100).call(0, "Isend", 48, 48.1, peer=1, size=100)
    seen.call(0, "Isend", 49.9, 50, peer=1, size=100)  # of the next round: not asked for yet
    assert seen.causes(hosts=TOGETHER) == {"late_sender": 45, "under_way": 2}


def test_between_hosts_without_a_known_connection_the_sender_can_be_late_and_the_transfer_is_not_explained():
    seen = scene().call(1, "Recv", 10, 60, peer=0).call(0, "Send", 55, 60, peer=1, size=100)
    assert seen.causes(hosts=APART) == {"late_sender": 45, "unknown": 5}
    assert seen.explained(hosts=APART).unknown_s == {waits.NO_STREAM: pytest.approx(0.005)}


@pytest.mark.parametrize(
    "seen",
    [
        scene().call(1, "Recv", 1, 60, peer=0),
        scene()
        .call(1, "Recv", 1, 60, peer=0)
        .call(1, "Recv", 61, 61.01, peer=-1)
        .call(0, "Send", 50, 60, peer=1)
        .call(0, "Send", 61, 61, peer=1),
        scene()
        .call(1, "Recv", 1, 60, peer=0)
        .call(0, "Send", 70, 71, peer=1)
        .call(1, "Irecv", 75, 75, peer=0)
        .call(0, "Send", 80, 81, peer=1),
        scene().call(1, "Probe", 1, 60, peer=0).call(1, "Recv", 61, 61.01, peer=0).call(0, "Send", 59, 60, peer=1),
    ],
    ids=["no such message", "a receive of anyone", "messages that overtook others", "a probe"],
)
def test_where_the_order_does_not_give_nothing_is_guessed(seen):
    assert seen.explained(hosts=TOGETHER).unknown_s == {waits.OUT_OF_ORDER: pytest.approx(0.059)}
    assert seen.causes(hosts=TOGETHER) == {"unknown": 59}


def test_a_message_through_memory_that_comes_after_the_last_packet_is_the_one_that_was_waited_for():
    seen = Scene().call(0, "Isend", 1, 1.1, peer=1, size=100).data(4, 0, 100)
    third = 2
    seen.call(1, "Irecv", 2, 2.01, peer=third).call(1, "Waitall", 3, 40).call(third, "Send", 30, 31, peer=1, size=10)
    (pair,) = seen.explained(hosts={0: "n2", 1: "n1", third: "n1"}).pairs
    assert (pair.sender, pair.receiver) == (third, 1)
    assert pair.seconds == pytest.approx((0.027, 0, 0.01, 0, 0, 0, 0, 0))


def test_a_receive_of_anyone_takes_the_message_of_the_rank_that_its_status_names():
    seen = scene().call(1, "Recv", 10, 60, source=0).call(0, "Send", 55, 60, peer=1, size=10)
    seen.call(1, "Recv", 61, 100, source=2).call(2, "Send", 91, 92, peer=1, size=10)
    pairs = {(pair.sender, pair.receiver): pair.seconds for pair in seen.explained(hosts={**TOGETHER, 2: "n1"}).pairs}
    assert pairs[0, 1] == pytest.approx((0.045, 0, 0.005, 0, 0, 0, 0, 0))
    assert pairs[2, 1] == pytest.approx((0.03, 0, 0.009, 0, 0, 0, 0, 0))


def test_an_exchange_waits_for_the_rank_that_it_receives_from():
    seen = scene().call(0, "Sendrecv", 50, 52, peer=1, size=10, source=1)
    seen.call(1, "Sendrecv", 10, 52, peer=0, size=10, source=0)
    late = {(pair.sender, pair.receiver): pair.seconds[0] for pair in seen.explained(hosts=TOGETHER).pairs}
    assert late == {(0, 1): pytest.approx(0.04), (1, 0): 0}
    ring = scene()
    for rank, began in ((0, 0), (1, 30), (2, 70)):
        ring.call(rank, "Sendrecv_replace", began, 80, peer=(rank + 1) % 3, size=10, source=(rank - 1) % 3)
    late = {(pair.sender, pair.receiver): pair.seconds[0] for pair in ring.explained().pairs}
    assert late == {(2, 0): pytest.approx(0.07), (0, 1): 0, (1, 2): 0}


def test_messages_of_one_communicator_do_not_stand_for_those_of_another():
    """The first receive is in the communicator of the second message."""
    seen = scene()
    seen.call(0, "Send", 5, 5.1, peer=1, size=10, comm=comm_of(1, 2))
    seen.call(0, "Send", 40, 40.1, peer=1, size=10, comm=comm_of(2, 2))
    seen.call(1, "Recv", 10, 41, peer=0, comm=comm_of(2, 2)).call(1, "Recv", 42, 42.01, peer=0, comm=comm_of(1, 2))
    assert seen.causes(hosts=TOGETHER) == {"late_sender": 30, "under_way": 1}


def test_a_receive_whose_sender_is_not_known_spoils_the_order_of_its_own_communicator_alone():
    seen = scene().call(0, "Send", 30, 30.1, peer=1, size=10, comm=comm_of(1, 2))
    seen.call(1, "Recv", 10, 31, peer=0, comm=comm_of(1, 2)).call(1, "Irecv", 50, 50.01, comm=comm_of(2, 2))
    assert seen.causes(hosts=TOGETHER) == {"late_sender": 20, "under_way": 1}
    seen.call(1, "Irecv", 51, 51.01, comm=0)
    assert seen.causes(hosts=TOGETHER) == {"unknown": 21}


def test_exchanges_with_no_rank_are_no_receives():
    seen = scene().call(1, "Recv", 10, 60, peer=0).call(0, "Send", 55, 60, peer=1, size=1)
    seen.call(1, "Sendrecv", 61, 61.01, source=-2)
    assert seen.causes(hosts=TOGETHER) == {"late_sender": 45, "under_way": 5}


def test_a_probe_that_takes_its_message_waits_for_it():
    seen = scene().call(1, "Mprobe", 10, 60, source=0).call(1, "Mrecv", 60, 60.01)
    seen.call(0, "Send", 55, 56, peer=1, size=10)
    assert seen.causes(hosts=TOGETHER) == {"late_sender": 45, "under_way": 5}


def test_nine_tenths_of_waits_of_every_kind_count_for_the_rank_that_was_late():
    """A ring, and a rank that takes what comes first: who is late is drawn, and known."""
    draw, seen, late_ms = random.Random(15), scene(), 0.0
    for number in range(200):
        at, worker, delay = 100.0 * number, draw.randrange(1, 4), draw.uniform(5, 90)
        comm = comm_of(draw.randrange(1, 4), 4)
        kind = draw.choice(["Recv", "Irecv", "Sendrecv"])
        seen.call(worker, "Send", at + delay, at + delay + 0.1, peer=0, size=10, comm=comm)
        if kind == "Irecv":
            seen.call(0, "Irecv", at, at + 0.001, source=worker, comm=comm).call(0, "Wait", at + 0.01, at + delay + 0.2)
        else:
            seen.call(0, kind, at, at + delay + 0.2, peer=-1, source=worker, comm=comm)
        late_ms += delay
    assert seen.explained().whole_s == pytest.approx(late_ms / 1e3, rel=0.02)
    assert seen.explained().share("late_sender") > 0.9
