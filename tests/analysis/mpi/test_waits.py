"""Waits and the packets that ended them: scenes of known causes."""

import pytest

from analysis.mpi import pairs, unread, waits
from tests.analysis.mpi.scenes import Scene

MSS = 1426


def test_a_message_that_is_sent_after_the_wait_began_is_late():
    scene = (
        Scene().call(1, "Recv", 10, 110.3, peer=0).call(0, "Send", 110, 110.1, peer=1, size=1000).data(110.2, 0, 1000)
    )
    assert scene.causes() == {"late_sender": 100, "under_way": 0.2, "receiver": 0.1}


def test_what_the_link_needs_for_the_frames_is_at_line_rate():
    """10 frames of 1 502 B at 10 Mbit/s take 1.2016 ms each after the call."""
    scene = Scene().call(1, "Recv", 10, 22.2, peer=0).call(0, "Send", 9, 9.5, peer=1, size=10 * MSS)
    for number in range(10):
        scene.data(10 + 1.2016 * (number + 1), 0, MSS)
    causes = scene.causes(link_rate_bps=1e7)
    assert causes["line_rate"] == pytest.approx(12.016, abs=0.01)
    assert sum(causes.values()) == pytest.approx(12.2)
    assert set(scene.causes()) == {"under_way", "receiver"}


def test_messages_that_queue_on_a_full_link_are_not_late():
    """Each is handed over while the one before is still on its way."""
    scene, frame_ms = Scene(), 1.2016
    for number in range(8):
        scene.call(0, "Send", 1 + 0.4 * number, 1.3 + 0.4 * number, peer=1, size=MSS)
        scene.data(1 + frame_ms * (number + 1), 0, MSS)
        scene.call(1, "Recv", 1.06 + frame_ms * number, 1.05 + frame_ms * (number + 1), peer=0)
    causes = scene.causes(link_rate_bps=1e7)
    assert "late_sender" not in causes
    assert causes["line_rate"] > 0.9 * sum(causes.values())


def test_bytes_that_the_capture_never_saw_were_lost_until_they_came():
    scene = Scene().call(1, "Recv", 1, 205.1, peer=0).call(0, "Send", 1, 1.2, peer=1, size=3 * MSS)
    scene.data(2, 0, MSS)
    place = scene.lose(0, MSS)
    scene.data(2.5, 0, MSS).data(205, 0, MSS, place=place)
    assert scene.causes() == {"under_way": 1.5, "retransmission": 202.5, "receiver": 0.1}


def test_bytes_that_come_again_were_lost_if_the_receiver_lacked_them():
    scene = Scene().call(1, "Recv", 1, 205, peer=0).call(0, "Send", 1, 1.2, peer=1, size=2 * MSS)
    place = scene.end_of(0)
    scene.data(2, 0, MSS).data(3, 0, MSS).ack(3.1, 1, place).data(205, 0, MSS, place=place)
    assert scene.causes() == {"under_way": 1, "retransmission": 203}


def test_bytes_that_come_again_were_lost_if_the_receiver_does_not_say_that_it_had_them():
    """No packet after the last one made the receiver report what it lacked."""
    scene = Scene().call(1, "Recv", 1, 205, peer=0).call(0, "Send", 1, 1.2, peer=1, size=2 * MSS)
    place = scene.end_of(0)
    scene.data(2, 0, MSS).data(205, 0, MSS, place=place).ack(205.1, 1, scene.end_of(0))
    assert scene.causes() == {"under_way": 1, "retransmission": 203}


def test_bytes_that_come_again_after_their_acknowledgement_was_lost_delayed_no_rank():
    scene = Scene().call(0, "Send", 1, 1.2, peer=1, size=MSS).call(1, "Recv", 3, 500.5, peer=0)
    place = scene.end_of(0)
    scene.data(2, 0, MSS).data(203, 0, MSS, place=place)
    scene.call(0, "Send", 500, 500.1, peer=1, size=MSS).data(500.4, 0, MSS)
    assert scene.causes() == {"late_sender": 497, "under_way": 0.4, "receiver": 0.1}


def test_a_small_message_that_shows_up_long_after_it_was_handed_over_was_lost_on_its_way_to_the_capture():
    scene = Scene().call(1, "Recv", 1, 215, peer=0).call(0, "Send", 11, 11.1, peer=1, size=100).data(215, 0, 100)
    assert scene.causes() == {"late_sender": 10, "retransmission": 204}


def test_what_was_lost_and_comes_together_with_later_messages_was_lost_since_it_was_handed_over():
    scene = Scene().call(1, "Recv", 1, 215, peer=0).call(0, "Send", 11, 11.1, peer=1, size=100)
    scene.call(0, "Send", 80, 80.1, peer=1, size=100).data(215, 0, 222)
    assert scene.causes() == {"late_sender": 10, "retransmission": 204}


def test_a_large_message_that_is_silent_for_long_is_not_explained():
    scene = Scene().call(1, "Recv", 1, 215, peer=0).call(0, "Send", 11, 216, peer=1, size=1 << 20).data(215, 0, MSS)
    assert scene.causes() == {"late_sender": 10, "unknown": 204}
    assert scene.explained().unknown_s == {pairs.SILENT: pytest.approx(0.204)}


def test_a_rank_that_comes_when_all_has_arrived_waits_for_itself():
    scene = Scene().call(0, "Send", 1, 1.1, peer=1, size=100).data(2, 0, 100).call(1, "Recv", 5, 9, peer=0)
    assert scene.causes() == {"receiver": 4}


def test_a_wait_without_a_name_is_for_the_rank_whose_packet_came_last():
    scene = Scene().call(1, "Wait", 10, 60, peer=-1).call(0, "Isend", 50, 50.1, peer=1, size=100).data(60, 0, 100)
    (pair,) = scene.explained().pairs
    assert (pair.sender, pair.receiver, pair.waits) == (0, 1, 1)
    assert scene.causes() == {"late_sender": 40, "under_way": 10}


def test_a_call_whose_clock_is_a_little_late_sent_its_packet_all_the_same():
    scene = Scene()
    for number in range(3):
        at = 10 + 20 * number
        scene.call(1, "Recv", at - 10, at + 0.1, peer=0).call(0, "Send", at + 0.002, at + 0.05, peer=1, size=100)
        scene.data(at, 0, 100)
    causes = scene.causes()
    assert causes == {"late_sender": 30, "receiver": pytest.approx(0.3)}


def test_short_waits_and_calls_that_send_are_left_out():
    scene = Scene().call(1, "Recv", 10, 10.04, peer=0).call(0, "Send", 1, 100, peer=1, size=100).data(10, 0, 100)
    assert scene.explained().pairs == ()


@pytest.mark.parametrize(
    ("scene", "reason"),
    [
        (Scene().call(1, "Wait", 10, 20), unread.NO_PEER),
        (Scene(greeted=False).call(1, "Recv", 10, 20, peer=0), waits.NO_STREAM),
        (Scene().call(1, "Recv", 10, 20, peer=0).data(20, 0, 100), pairs.NOT_KEPT),
        (
            Scene()
            .call(0, "Send", 1, 2, peer=1, size=10)
            .data(2, 0, 10)
            .data(20, 0, 900)
            .call(1, "Recv", 10, 20, peer=0),
            pairs.NOT_OURS,
        ),
    ],
)
def test_what_is_not_known_has_its_reason(scene, reason):
    assert scene.explained().unknown_s == {reason: pytest.approx(0.01)}
    assert scene.causes() == {"unknown": 10}


def test_waits_after_the_last_packet_that_is_followed_are_not_explained():
    scene = Scene().call(0, "Send", 1, 2, peer=1, size=10).data(3, 0, 10).call(1, "Recv", 2.5, 3.1, peer=0)
    known = waits.explained(scene.calls, scene.wire(most_packets=2))
    assert known.unknown_s == {waits.NOT_FOLLOWED: pytest.approx(0.0006)}


def test_shares_are_those_of_all_waiting_time():
    scene = Scene().call(1, "Recv", 10, 110, peer=0).call(0, "Send", 110, 110.1, peer=1, size=10).data(110, 0, 10)
    assert scene.explained().share("late_sender") == pytest.approx(1.0)
    assert Scene().call(0, "Send", 1, 2, peer=1).explained().share("late_sender") == 0.0


def test_no_order_of_packets_in_chunks_changes_anything():
    scene = Scene().call(1, "Recv", 1, 205.1, peer=0).call(0, "Send", 1, 1.2, peer=1, size=3 * MSS)
    place = scene.data(2, 0, MSS).lose(0, MSS)
    scene.data(2.5, 0, MSS).data(205, 0, MSS, place=place)
    parts = scene.wire_of_pieces([2, 3])
    assert waits.explained(scene.calls, parts) == scene.explained()
