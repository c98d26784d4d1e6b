"""Ranks over time, down-sampled without losing time."""

import numpy as np
import pytest

from analysis.mpi.timeline import span_of, timeline
from tests.analysis.mpi.scenes import EPOCH, MS, Scene


def timeline_of(scene, begin, end, steps, most_ranks=8):
    return timeline(scene.calls, EPOCH + int(begin * MS), EPOCH + int(end * MS), steps, most_ranks)


@pytest.fixture
def scene():
    scene = Scene().call(0, "Send", 0, 10, peer=1).call(0, "Recv", 15, 40, peer=1).call(0, "Barrier", 90, 100)
    return scene.call(1, "Recv", 20, 100, peer=0)


def test_its_steps_hold_what_was_inside_mpi_and_in_long_waits(scene):
    result = timeline_of(scene, 0, 100, 10)
    assert result.ranks == (0, 1)
    assert result.inside[0].tolist() == pytest.approx([1, 0.5, 1, 1, 0, 0, 0, 0, 0, 1])
    assert result.waiting[0].tolist() == pytest.approx([0, 0.5, 1, 1, 0, 0, 0, 0, 0, 0])


@pytest.mark.parametrize("steps", [1, 3, 7, 100])
def test_no_time_is_lost_or_added_by_the_number_of_steps(scene, steps):
    result = timeline_of(scene, 0, 100, steps)
    lengths_ms = np.diff(result.edges_ns) / MS
    assert (result.inside[0] * lengths_ms).sum() == pytest.approx(45)
    assert (result.waiting[0] * lengths_ms).sum() == pytest.approx(25)


def test_a_part_is_shown_as_it_is_in_the_whole(scene):
    assert timeline_of(scene, 10, 20, 2).inside[0].tolist() == pytest.approx([0, 1])


def test_nothing_is_said_of_time_before_the_first_call_that_is_kept(scene):
    result = timeline_of(scene, 0, 100, 10)
    assert np.isnan(result.inside[1]).tolist() == [True, True, *[False] * 8]
    assert span_of(scene.calls) == (EPOCH, EPOCH + 100 * MS)


def test_calls_of_two_threads_count_once():
    scene = Scene().call(0, "Send", 0, 60, peer=1).call(0, "Send", 20, 40, peer=1).call(0, "Send", 50, 100, peer=1)
    assert timeline_of(scene, 0, 100, 4).inside[0].tolist() == pytest.approx([1, 1, 1, 1])


def test_it_keeps_to_the_ranks_that_are_asked_for(scene):
    assert timeline_of(scene, 0, 100, 4, most_ranks=1).ranks == (0,)
