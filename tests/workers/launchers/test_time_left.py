"""A trial begins in a shared job only if enough time is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from workers import launchers
from workers.launchers.pool import _Held
from workers.launchers.schedulers.launcher import Allocation, SchedulerLauncher

KEY = ("slurm", "settings", 7)


def held(left_s: float | None, *, alive: bool = True, finished: int = 1, longest_s: float = 60.0) -> _Held:
    class LimitedAllocation(Allocation):
        def alive(self) -> bool:
            return alive

        def left_s(self) -> float | None:
            return left_s

    launcher = launchers.get("slurm")
    assert isinstance(launcher, SchedulerLauncher)
    allocation = LimitedAllocation(launcher.queue, "12", ("n1", "n2", "n3"), Path("/scratch"))
    return _Held(KEY, launcher, allocation, finished, longest_s)


@pytest.mark.parametrize(("left_s", "suits"), [(None, True), (91.0, True), (89.0, False), (0.0, False)])
def test_it_wants_half_as_much_again_as_the_longest_trial_took(left_s: float | None, suits: bool) -> None:
    assert held(left_s).suits(KEY, 3, time_limit_s=600.0) is suits


def test_no_trial_needs_more_than_its_own_limit() -> None:
    assert held(45.0).suits(KEY, 3, time_limit_s=30.0)


def test_the_first_trial_begins_whatever_the_job_has() -> None:
    assert held(1.0, finished=0, longest_s=0.0).suits(KEY, 3, time_limit_s=600.0)


def test_another_experiment_more_hosts_or_an_ended_job_need_another_job() -> None:
    assert not held(None).suits(("slurm", "settings", 8), 3, 600.0)
    assert not held(None).suits(KEY, 4, 600.0)
    assert not held(None, alive=False).suits(KEY, 3, 600.0)
