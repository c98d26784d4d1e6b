"""Waits for a closed window of the receiver: scenes of known truth."""

import pytest

from analysis.mpi import unread
from analysis.mpi.wait_sums import CAUSES
from tests.analysis.mpi.scenes import HEADER_BYTES, Scene

MSS = 1426
PACKET = MSS + HEADER_BYTES


def small_window(packets):
    """The receiver has room for so many packets, and waits for twice as many."""
    scene = Scene(window=packets * PACKET).call(0, "Send", 9, 9.5, peer=1, size=2 * packets * MSS)
    scene.ack(0.5, 1, scene.end_of(0), window=packets * PACKET)
    for number in range(packets):
        scene.data(10 + 0.01 * number, 0, MSS)
    return scene


def with_the_rest(scene, at, packets):
    for number in range(packets):
        scene.data(at + 0.01 * number, 0, MSS)
    return scene


def test_data_wait_for_the_window_until_an_answer_opens_it():
    scene = small_window(4).ack(50, 1, small_window(4).end_of(0), window=4 * PACKET)
    with_the_rest(scene, 51, 4).call(1, "Recv", 10, 51.13, peer=0)
    assert scene.causes() == {
        "under_way": pytest.approx(1.06),
        "closed_window": pytest.approx(39.97),
        "receiver": pytest.approx(0.1),
    }


def test_a_window_of_less_than_a_segment_is_closed():
    scene = small_window(4)
    scene.ack(20, 1, scene.end_of(0), window=PACKET - 1).ack(50, 1, scene.end_of(0), window=4 * PACKET)
    with_the_rest(scene, 51, 4).call(1, "Recv", 10, 51.03, peer=0)
    assert scene.causes()["closed_window"] == pytest.approx(39.97)


def test_a_window_that_is_zero_for_longer_than_any_timer_is_no_loss():
    scene = small_window(4)
    scene.ack(12, 1, scene.end_of(0), window=0).ack(900, 1, scene.end_of(0), window=4 * PACKET)
    with_the_rest(scene, 900.1, 4).call(1, "Recv", 10, 900.13, peer=0)
    assert scene.causes() == {"under_way": pytest.approx(0.16), "closed_window": pytest.approx(889.97)}


def test_nothing_waits_for_a_window_before_it_is_handed_over():
    scene = Scene(window=2 * PACKET).call(0, "Send", 9, 9.5, peer=1, size=2 * MSS)
    scene.ack(0.5, 1, scene.end_of(0), window=2 * PACKET).data(10, 0, MSS).data(10.01, 0, MSS)
    scene.call(0, "Send", 40, 40.1, peer=1, size=MSS).ack(50, 1, scene.end_of(0), window=4 * PACKET)
    scene.data(51, 0, MSS).call(1, "Recv", 20, 51, peer=0)
    assert scene.causes() == {"late_sender": 20, "closed_window": 10, "under_way": 1}


@pytest.mark.parametrize("window", [None, 40 * PACKET])
def test_without_shifts_or_with_room_it_is_the_way(window):
    scene = Scene(window=window).call(0, "Send", 9, 9.5, peer=1, size=8 * MSS)
    scene.ack(0.5, 1, scene.end_of(0), window=40 * PACKET if window else 0)
    with_the_rest(scene, 10, 4).ack(50, 1, scene.end_of(0), window=60_000)
    with_the_rest(scene, 51, 4).call(1, "Recv", 10.5, 51.03, peer=0)
    assert set(scene.causes()) == {"under_way"}


def unread_scene(call, **arguments):
    """Rank 1 reads from 500 ms on: rank 0 waits for that and receives nothing."""
    scene = Scene(window=4 * PACKET).call(0, "Isend", 8, 8.5, peer=1, size=8 * MSS)
    scene.ack(0.5, 1, scene.end_of(0), window=4 * PACKET)
    with_the_rest(scene, 10, 4).ack(12, 1, scene.end_of(0), window=0).ack(500, 1, scene.end_of(0), window=60_000)
    return with_the_rest(scene, 501, 4).call(0, call, 20, 510, **arguments)


def by_pair(scene):
    return {
        (pair.sender, pair.receiver, pair.waits): {
            name: round(1e3 * s, 6) for name, s in zip(CAUSES, pair.seconds, strict=True) if s
        }
        for pair in scene.explained().pairs
    }


def test_a_rank_waits_for_the_one_that_does_not_read_what_it_sent():
    scene = unread_scene("Waitall")
    assert by_pair(scene) == {(1, 0, 1): {"closed_window": 480, "unknown": 10}}
    assert scene.explained().unknown_s == {unread.NO_PEER: pytest.approx(0.01)}


def test_of_a_send_only_what_the_window_kept_is_a_wait():
    scene = Scene(window=4 * PACKET).call(0, "Send", 8, 510, peer=1, size=8 * MSS)
    scene.ack(0.5, 1, scene.end_of(0), window=4 * PACKET)
    with_the_rest(scene, 10, 4).ack(12, 1, scene.end_of(0), window=0).ack(500, 1, scene.end_of(0), window=60_000)
    assert by_pair(with_the_rest(scene, 501, 4)) == {(1, 0, 1): {"closed_window": 489.97}}
