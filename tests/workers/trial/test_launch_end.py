"""A launch command that hangs after its ranks ends the trial in time."""

from __future__ import annotations

import shlex
from collections.abc import Callable

import pytest

from experiments.models import State, Trial
from tests.words import plain
from workers.launchers import Job, Launcher, testbed
from workers.trial import measure


@pytest.fixture
def run_under_a_launcher_that_hangs(
    run_all: Callable[..., list[Trial]], script_workload: object, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], Trial]:
    """Run a trial's one rank with a launch command that stays; return it."""
    monkeypatch.setattr(measure, "END_LIMIT_S", 1.0)
    monkeypatch.setattr(measure, "TERM_GRACE_S", 0.2)

    def argv(_launcher: Launcher, job: Job) -> list[str]:
        rank = shlex.join(job.wrapped_program())
        return ["sh", "-c", f"OMPI_COMM_WORLD_RANK=0 {rank}; sleep 600"]

    monkeypatch.setattr(testbed.TestbedLauncher, "argv", argv)

    def run(script: str) -> Trial:
        (trial,) = run_all(workload="script", parameters={"script": script}, time_limit_s=30)
        return trial

    return run


def test_it_names_the_rank_that_was_killed(run_under_a_launcher_that_hangs: Callable[[str], Trial]) -> None:
    trial = run_under_a_launcher_that_hangs("import os; print('so far', flush=True); os.kill(os.getpid(), 9)")
    assert trial.state == State.FAILED
    assert "rank 0 of 1 on n1 was killed by SIGKILL" in plain(trial.message)
    assert "The launch command did not end within 1 s of that and was stopped." in plain(trial.message)


def test_it_reports_that_all_ranks_had_ended(run_under_a_launcher_that_hangs: Callable[[str], Trial]) -> None:
    trial = run_under_a_launcher_that_hangs("print('answer 42')")
    assert trial.state == State.FAILED
    assert plain(trial.message).startswith("All ranks of Script ended. The launch command did not end within 1 s")


def test_a_rank_that_takes_its_time_is_left_alone(
    run_all: Callable[..., list[Trial]], script_workload: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "END_LIMIT_S", 0.0)
    script = "import time; time.sleep(2.5); print('answer 42')"
    (trial,) = run_all(workload="script", parameters={"script": script})
    assert trial.state == State.FINISHED, trial.message
