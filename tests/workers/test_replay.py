"""SimGrid replays traces in known times; without it there is a reason."""

from __future__ import annotations

import pytest

from analysis.replay.actions import Traces, traces
from analysis.replay.calibration import Calibration
from analysis.replay.errors import NotReplayable
from analysis.sensitivity import Link
from tests.analysis.replay.scenes import ping_pong
from workers import replay as runner

IDEAL = Calibration(overhead_s=0.0, rate_share=1.0, large_times=1.0, scatter=0.0, exchanges=0)
needs_simgrid = pytest.mark.skipif(not runner.available(), reason="SimGrid is not installed")


@needs_simgrid
@pytest.mark.parametrize(("rate_bps", "seconds"), [(1e9, 0.560), (10e9, 0.272)])
@pytest.mark.parametrize("topology", ["star", "two sites"])
def test_400_messages_of_100_kb_take_what_delay_and_rate_say(rate_bps, seconds, topology):
    answer = runner.replay(
        traces(ping_pong(400, 100_000)), Link(600e-6, rate_bps), IDEAL, places=[0, 1], topology=topology
    )
    assert answer == pytest.approx(seconds, rel=1e-3)


@needs_simgrid
def test_overhead_share_of_the_rate_and_the_price_of_large_messages_are_paid_per_message():
    calibration = Calibration(overhead_s=100e-6, rate_share=0.5, large_times=3.0, scatter=0.0, exchanges=9)
    for size in (1000, 100_000):
        answer = runner.replay(traces(ping_pong(100, size)), Link(200e-6, 1e9), calibration, places=[0, 1])
        assert answer == pytest.approx(100 * calibration.seconds(Link(200e-6, 1e9), size), rel=1e-2)


@needs_simgrid
def test_calls_that_wait_for_each_other_for_ever_end_with_a_sentence():
    stuck = Traces((("0 init", "0 recv 1 0 8", "0 finalize"), ("1 init", "1 recv 0 0 8", "1 finalize")), 1.0, ())
    with pytest.raises(NotReplayable, match="SimGrid could not replay the calls"):
        runner.replay(stuck, Link(1e-4, 1e9), IDEAL, places=[0, 1])


def test_without_simgrid_a_sentence_reports_it(monkeypatch):
    monkeypatch.setattr(runner, "PROGRAM", "no-such-program")
    assert not runner.available()
    with pytest.raises(NotReplayable, match="SimGrid is not installed"):
        runner.replay(traces(ping_pong(2, 8)), Link(1e-4, 1e9), IDEAL, places=[0, 1])
