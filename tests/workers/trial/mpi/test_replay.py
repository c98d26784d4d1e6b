"""A program of the test-bed is replayed on networks of known costs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from analysis.replay.actions import traces
from analysis.replay.calibration import Calibration
from analysis.sensitivity import Link
from experiments.files import read_mpi_calls
from experiments.models import State, Trial
from workers import replay

STEPS, WARMUPS, BYTES = 200, 20, 16384
EXACT = Calibration(overhead_s=0.0, rate_share=1.0, large_times=1.0, scatter=0.0, exchanges=0)


@pytest.mark.skipif(not replay.available(), reason="SimGrid is not installed")
def test_a_ring_that_ran_costs_its_messages_on_another_network(run_all: Callable[..., list[Trial]]) -> None:
    """Differences between links are without the machine's computing time."""
    parameters = {"message_bytes": BYTES, "steps": STEPS, "hosts": 2}
    (trial,) = run_all(workload="ring", parameters=parameters, profile="trace", certificate="skip")
    assert trial.state == State.FINISHED, trial.message + trial.traceback
    calls = read_mpi_calls(trial)
    assert calls is not None
    answer = traces(calls)

    def seconds(delay_s: float, rate_bps: float) -> float:
        return replay.replay(answer, Link(delay_s, rate_bps), EXACT, places=[0, 1])

    mild = seconds(0.0, 1e9)
    # Longer than any turn of another process on a busy core, so that nothing of it hides behind computing.
    assert seconds(0.05, 1e9) - mild == pytest.approx((STEPS + WARMUPS) * 0.05, rel=0.1)
    # On a busy machine one rank may be a step ahead: its next message then shares the link with the last one, which arrives later
    # than if they were sent in turn, as TCP does. Two at a time share it at most.
    sent = (STEPS + WARMUPS) * 8 * BYTES / 1e6
    assert 0.9 * sent <= seconds(0.0, 1e6) - mild <= 1.6 * sent
