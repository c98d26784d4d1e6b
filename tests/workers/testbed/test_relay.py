"""What the relay does with frames: order, delay, and how it loses."""

from __future__ import annotations

import statistics
from itertools import groupby

import pytest

from workers.testbed import relay
from workers.testbed.emulation import gilbert


@pytest.mark.parametrize(("burst", "mean_run"), [(1.0, 1 / 0.9), (5.0, 5.0)])
def test_it_loses_the_share_that_is_asked_for_in_runs_of_the_asked_length(burst: float, mean_run: float) -> None:
    lost = relay.losses({"loss": 0.1, "loss_burst": burst})
    outcomes = [lost() for _ in range(200_000)]
    runs = [len(list(run)) for value, run in groupby(outcomes) if value]
    assert statistics.fmean(outcomes) == pytest.approx(0.1, abs=0.01)
    assert statistics.fmean(runs) == pytest.approx(mean_run, rel=0.05)


def test_a_wire_without_loss_loses_nothing_and_gilberts_chain_converges_to_the_share() -> None:
    lost = relay.losses({})
    assert not any(lost() for _ in range(1000))
    enter, leave = gilbert(0.02, 4.0)
    assert enter / (enter + leave) == pytest.approx(0.02)
    assert 1 / leave == 4.0


def test_jitter_is_half_of_the_range_or_the_standard_deviation() -> None:
    uniform = relay.delays_ns({"delay_s": 0.004, "jitter_s": 0.001})
    values = [uniform() for _ in range(20_000)]
    assert min(values) >= 3_000_000
    assert max(values) <= 5_000_000
    assert statistics.fmean(values) == pytest.approx(4e6, rel=0.01)
    normal = relay.delays_ns({"delay_s": 0.016, "jitter_s": 0.001, "distribution": "normal"})
    assert statistics.stdev([normal() for _ in range(20_000)]) == pytest.approx(1e6, rel=0.05)


def test_frames_never_overtake_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    way = relay.Way(0, 1, {"delay_s": 0.005, "jitter_s": 0.005})
    frames = iter([bytes([number]) for number in range(50)])

    def read(_source: int, _length: int) -> bytes:
        try:
            return next(frames)
        except StopIteration:
            raise BlockingIOError from None

    monkeypatch.setattr(relay.os, "read", read)
    way.take()
    due = [due_ns for due_ns, _ in way.waiting]
    assert len(due) == 50
    assert due == sorted(due)
