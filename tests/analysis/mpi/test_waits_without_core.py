"""Waits for ranks that had no processor: scenes of known truth."""

import numpy as np
import pytest

from analysis.mpi.calls import CALL, Calls
from analysis.mpi.cores import Cores, at_its_end
from analysis.mpi.wait_sums import ALL_RANKS, CAUSES
from tests.analysis.mpi.scenes import EPOCH, MS, Scene

TOGETHER = {0: "n1", 1: "n1"}


def by_pair(scene, **asked):
    return {
        (pair.sender, pair.receiver): {
            name: round(1e3 * s, 6) for name, s in zip(CAUSES, pair.seconds, strict=True) if s
        }
        for pair in scene.explained(**asked).pairs
    }


def test_a_late_sender_is_late_only_while_it_has_a_processor():
    scene = Scene().call(1, "Recv", 10, 110, peer=0).call(0, "Iprobe", 5, 10)
    scene.call(0, "Send", 110, 110.1, peer=1, size=100, no_core=(70, 0)).data(110, 0, 100)
    assert scene.causes() == {"late_sender": 30, "no_core": 70}


def test_what_the_sender_lacked_before_the_wait_counts_by_time():
    scene = Scene().call(1, "Recv", 60, 110, peer=0).call(0, "Iprobe", 5, 10)
    scene.call(0, "Send", 110, 110.1, peer=1, size=100, no_core=(70, 0)).data(110, 0, 100)
    assert scene.causes() == {"late_sender": 15, "no_core": 35}


def test_a_receiver_to_which_all_had_come_lacks_a_processor():
    scene = Scene().call(0, "Send", 9, 9.1, peer=1, size=100).data(12, 0, 100)
    scene.call(1, "Recv", 10, 22, peer=0, no_core=(0, 9))
    assert scene.causes() == {"under_way": 2, "receiver": 1, "no_core": 9}


def test_a_receiver_that_lacked_one_while_nothing_had_come_waited_for_its_sender():
    scene = Scene().call(1, "Recv", 10, 111, peer=0, no_core=(0, 60))
    scene.call(0, "Send", 110, 110.1, peer=1, size=100).data(110, 0, 100)
    assert scene.causes() == {"late_sender": 100, "no_core": 1}


def test_on_one_host_both_are_reported_without_packets():
    seen = Scene(greeted=False).call(1, "Recv", 10, 70, peer=0, no_core=(0, 8)).call(0, "Iprobe", 1, 10)
    seen.call(0, "Send", 60, 60.1, peer=1, size=100, no_core=(30, 0))
    assert seen.causes(hosts=TOGETHER) == {"late_sender": 20, "no_core": 38, "under_way": 2}


def test_the_last_rank_of_a_collective_may_have_had_none():
    scene = Scene(greeted=False).call(1, "Iprobe", 0, 1).call(0, "Barrier", 1, 105, no_core=(0, 3))
    scene.call(1, "Barrier", 101, 105, no_core=(40, 3))
    found = by_pair(scene)
    assert found[1, 0] == {"late_sender": 60, "no_core": 40}
    assert found[ALL_RANKS, 0] == {"under_way": 4}  # between hosts it may be the network
    assert by_pair(scene, hosts=TOGETHER)[ALL_RANKS, 0] == {"under_way": 1, "no_core": 3}


def test_nothing_is_said_where_the_kernel_does_not_tell():
    scene = Scene().call(1, "Recv", 10, 111, peer=0, no_core=(0, 0))
    assert scene.explained().run_delay_known
    rows = np.array([(0, 5, 1, 8, EPOCH, EPOCH + MS, 0, -1, -1, -1)], CALL)
    cores = Cores(Calls(rows, {0: 0}))
    assert not cores.is_known
    assert cores.outside(0, np.array([EPOCH]), np.array([EPOCH + MS])).tolist() == [0]
    assert at_its_end(np.array([-1]), np.array([5])).tolist() == [0]


@pytest.mark.parametrize(("until", "lacked"), [(10, 0), (30, 10), (50, 20), (90, 20), (130, 20)])
def test_what_is_lacked_between_calls_is_spread_over_the_stretch(until, lacked):
    scene = Scene().call(0, "Iprobe", 0, 10).call(0, "Iprobe", 50, 90, no_core=(20, 15))
    spans = (np.array([EPOCH]), np.array([EPOCH + until * MS]))
    assert Cores(scene.calls).outside(0, *spans).tolist() == pytest.approx([lacked * MS])
