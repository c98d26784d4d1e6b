"""Waits for ranks of which no packet is known: the order of calls tells when the sender sent."""

import pytest

from analysis.mpi import waits
from tests.analysis.mpi.scenes import Scene

TOGETHER = {0: "n1", 1: "n1"}
APART = {0: "n1", 1: "n2"}


def scene():
    return Scene(greeted=False)


def test_on_one_host_a_receive_is_late_until_the_send_and_the_rest_is_the_way():
    seen = scene().call(1, "Recv", 10, 60, peer=0).call(0, "Send", 55, 60, peer=1, size=1 << 20)
    assert seen.causes(hosts=TOGETHER) == {"late_sender": 45, "under_way": 5}


def test_messages_on_each_others_heels_are_not_taken_for_late_ones():
    """The sender begins the second when the first has been copied, shortly before its receiver knows."""
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
def test_where_the_order_does_not_tell_nothing_is_guessed(seen):
    assert seen.explained(hosts=TOGETHER).unknown_s == {waits.OUT_OF_ORDER: pytest.approx(0.059)}
    assert seen.causes(hosts=TOGETHER) == {"unknown": 59}


def test_a_message_through_memory_that_comes_after_the_last_packet_is_the_one_that_was_waited_for():
    seen = Scene().call(0, "Isend", 1, 1.1, peer=1, size=100).data(4, 0, 100)
    third = 2
    seen.call(1, "Irecv", 2, 2.01, peer=third).call(1, "Waitall", 3, 40).call(third, "Send", 30, 31, peer=1, size=10)
    (pair,) = seen.explained(hosts={0: "n2", 1: "n1", third: "n1"}).pairs
    assert (pair.sender, pair.receiver) == (third, 1)
    assert pair.seconds == pytest.approx((0.027, 0, 0.01, 0, 0, 0, 0, 0))
