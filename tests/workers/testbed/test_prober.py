"""The clocks of the ends of a measured path."""

from __future__ import annotations

from itertools import cycle

import pytest

from workers.testbed import prober, schedule


def test_a_core_that_is_lost_between_two_clocks_moves_no_arrival(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most readings are disturbed, before or after the wall clock; one in five is not."""
    now_ns, ahead_ns = 5_000_000, 1_700_000_000_000_000_000
    lost_ns = cycle([160_000, 0, 0, 0, 200_000, 0, 90_000, 90_000, 0, 0, 0, 0])

    def monotonic_ns() -> int:
        nonlocal now_ns
        now_ns += 50 + next(lost_ns)
        return now_ns

    monkeypatch.setattr(prober.time, "monotonic_ns", monotonic_ns)
    monkeypatch.setattr(prober.time, "time_ns", lambda: monotonic_ns() + ahead_ns)
    assert prober.wall_ahead_ns() == pytest.approx(ahead_ns, abs=100)


@pytest.mark.parametrize(("delay_s", "polling"), [(0.001, ["delay"]), (2.0, [])])
def test_both_ends_poll_while_a_short_delay_is_measured(delay_s: float, polling: list[str]) -> None:
    request = schedule.RequestedPath(1e8, 1500, delay_s=delay_s)
    planned = schedule.phases((request, request))
    for plan in schedule.prober_plans(planned, ("10.77.0.1", "10.77.0.2"), 0):
        names = [phase.name for phase, answer in zip(planned, plan["phases"], strict=True) if answer.get("polls")]
        assert names == polling
