"""Frames in the relay: order, delay, rate and loss."""

from __future__ import annotations

import statistics
import subprocess
import sys
from itertools import groupby, pairwise

import pytest

from tests.workers.testbed.relay_library import Way
from workers.agent.machine import memory_bytes
from workers.testbed import emulation
from workers.testbed.emulation import gilbert

FRAME_BYTES = 1514
FRAME_NS = 12_112
"""At 1 Gbit/s."""
SECOND_NS = 1_000_000_000


@pytest.mark.parametrize(("burst", "mean_run"), [(1.0, 1 / 0.9), (5.0, 5.0)])
def test_it_loses_the_share_that_is_requested_in_runs_of_the_asked_length(burst: float, mean_run: float) -> None:
    outcomes = Way(loss=0.1, loss_burst=burst).losses(200_000)
    runs = [len(list(run)) for value, run in groupby(outcomes) if value]
    assert statistics.fmean(outcomes) == pytest.approx(0.1, abs=0.01)
    assert statistics.fmean(runs) == pytest.approx(mean_run, rel=0.05)


def test_a_wire_without_loss_loses_nothing_and_gilberts_chain_converges_to_the_share() -> None:
    assert not any(Way().losses(1000))
    enter, leave = gilbert(0.02, 4.0)
    assert enter / (enter + leave) == pytest.approx(0.02)
    assert 1 / leave == 4.0


def test_jitter_is_half_of_the_range_or_the_standard_deviation() -> None:
    values = Way(delay_s=0.004, jitter_s=0.001).delays_ns(20_000)
    assert 3_000_000 <= min(values) < 3_010_000
    assert 4_990_000 < max(values) <= 5_000_000
    assert statistics.fmean(values) == pytest.approx(4e6, rel=0.01)
    normal = Way(delay_s=0.016, jitter_s=0.001, distribution="normal").delays_ns(20_000)
    assert statistics.fmean(normal) == pytest.approx(16e6, rel=0.01)
    assert statistics.stdev(normal) == pytest.approx(1e6, rel=0.05)


def test_frames_never_overtake_each_other() -> None:
    way = Way(delay_s=0.005, jitter_s=0.005)
    due = [way.due_ns(number * 1000) for number in range(50)]
    assert due == sorted(due)
    assert due[0] >= 0


def test_frames_leave_a_gigabit_link_as_far_apart_as_it_needs_for_them() -> None:
    way = Way(delay_s=0.001, rate_bps=1e9)
    remaining = way.leaves_ns([SECOND_NS] * 100, FRAME_BYTES)
    assert remaining[0] == SECOND_NS + 1_000_000
    assert {after - before for before, after in pairwise(remaining)} == {FRAME_NS}


def test_a_relay_that_was_late_hands_over_no_burst_and_catches_up() -> None:
    way = Way(delay_s=0.001, rate_bps=1e9)
    read = [SECOND_NS + number * FRAME_NS for number in range(2000)]
    late_ns = 2_000_000
    remaining = way.leaves_ns(read, FRAME_BYTES, awake_ns=read[0] + 1_000_000 + late_ns)
    # After five frames that fit into 60 us the line is never more than a tenth faster than its rate ...
    assert (
        min(after - before for before, after in zip(remaining[6:], remaining[50:], strict=False))
        >= 44 * FRAME_NS / 1.1001
    )
    # ... and in the end nothing of the delay is left.
    assert remaining[0] - read[0] == 1_000_000 + late_ns
    assert remaining[-1] - read[-1] == 1_000_000


def test_a_link_without_a_rate_hands_over_what_is_due() -> None:
    assert set(Way(delay_s=0.001).leaves_ns([SECOND_NS] * 100, FRAME_BYTES)) == {SECOND_NS + 1_000_000}


def test_frames_on_their_way_take_a_share_of_the_memory() -> None:
    """A program can send any number of them within ten seconds of delay."""
    code = (
        "import resource, runpy, sys\n"
        "try:\n    runpy.run_path(sys.argv.pop(), run_name='__main__')\n"
        "except BaseException: pass\n"
        "print(resource.getrlimit(resource.RLIMIT_DATA)[1])"
    )
    words = [sys.executable, "-c", code, "libc.so.6", "[]", str(emulation.RELAY)]
    limit = int(subprocess.check_output(words, text=True, timeout=60))
    assert 0 < limit < memory_bytes() / 2
