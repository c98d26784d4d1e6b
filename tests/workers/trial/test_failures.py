"""Trials that go wrong end FAILED with a sentence, and the next one runs."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from experiments.models import Lease, State, Trial
from experiments.reparse import candidates, reparse
from experiments.workloads import Mismatch, Parsed
from tests.words import plain
from workers.capture import ring
from workers.trial import results

GOOD = "print('answer 42')"
TALK = "from mpi4py import MPI; [MPI.COMM_WORLD.allreduce(1) for _ in range(500)]"


@pytest.fixture
def outcome(run_all: Callable[..., list[Trial]], script_workload: object) -> Callable[..., Trial]:
    """Run the given script, then a good one; return the first trial."""

    def run(script: str, **fields: object) -> Trial:
        first, second = run_all(workload="script", sweep={"script": [script, GOOD]}, **fields)
        assert second.state == State.FINISHED, second.message
        assert not Lease.objects.exists()
        return first

    return run


def test_it_names_the_rank_the_exit_status_and_the_last_lines(outcome: Callable[..., Trial]) -> None:
    trial = outcome("import sys; print('before the end'); sys.exit('no such potential')")
    assert trial.state == State.FAILED
    assert "rank 0 of 1 on n1 ended with exit status 1" in trial.message
    assert "no such potential" in trial.message
    assert set(trial.artifacts.values_list("name", flat=True)) >= {"stdout.txt", "stderr.txt", "capture.pcapng.zst"}
    assert trial.environment is not None
    assert trial.environment.facts["kernel"] == os.uname().release


def test_it_names_the_signal_that_killed_a_rank(outcome: Callable[..., Trial]) -> None:
    trial = outcome("import os; os.kill(os.getpid(), 9)")
    assert trial.state == State.FAILED
    assert "rank 0 of 1 on n1 was killed by SIGKILL" in trial.message


def test_it_stops_a_run_at_its_time_limit(outcome: Callable[..., Trial]) -> None:
    trial = outcome("import time; print('working', flush=True); time.sleep(600)", time_limit_s=2)
    assert trial.state == State.FAILED
    assert "time limit of 2 s" in plain(trial.message)
    assert "working" in trial.message


def test_it_refuses_output_that_makes_no_sense(outcome: Callable[..., Trial]) -> None:
    trial = outcome("print('lorem ipsum')")
    assert trial.state == State.FAILED
    assert "The script gave no answer" in trial.message
    assert "lorem ipsum" in trial.message


def test_a_run_that_says_it_was_another_one_never_counts(outcome: Callable[..., Trial]) -> None:
    trial = outcome("print('answer 42'); print('ranks 4')")
    assert trial.state == State.FAILED
    assert "its output says that it ran with ranks 4, not 1" in trial.message
    assert not trial.measurements.exists()
    assert reparse(candidates()).finished == 0
    trial.refresh_from_db()
    assert trial.state == State.FAILED


def test_it_keeps_what_it_measured_for_a_better_parser(
    outcome: Callable[..., Trial], script_workload: Callable[..., None]
) -> None:
    trial = outcome("open('said', 'w').write('x'); print('lorem 7')")
    assert not trial.measurements.exists()
    improved = Parsed({"script.answer": 7.0})
    script_workload(parse=lambda *_: improved)
    assert reparse(candidates()).finished == 1
    trial.refresh_from_db()
    assert trial.state == State.FINISHED
    values = dict(trial.measurements.filter(scope="all").values_list("metric", "value"))
    assert values["script.answer"] == 7.0
    assert values["elapsed_s"] > 0
    assert "packets" in values
    assert trial.environment is not None


def test_it_names_the_package_of_a_missing_program(
    run_all: Callable[..., list[Trial]], script_workload: Callable[..., None]
) -> None:
    script_workload(programs={"no-such-program": "no-such-package"})
    (trial,) = run_all(workload="script")
    assert trial.state == State.FAILED
    assert "needs the package no-such-package" in trial.message


def test_it_reports_why_input_files_cannot_be_written(
    run_all: Callable[..., list[Trial]], script_workload: Callable[..., None]
) -> None:
    def files(parameters: object, *, ranks: int) -> dict[str, str]:
        raise Mismatch("script", f"the script takes no {ranks} rank")

    script_workload(files=files)
    (trial,) = run_all(workload="script")
    assert (trial.state, trial.message) == (State.FAILED, "the script takes no 1 rank.")


def test_it_keeps_the_file_of_an_unreadable_capture(
    run_all: Callable[..., list[Trial]], script_workload: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    analyse = results.analysis.analyse

    def spoil_then_analyse(path, **options):
        path.write_bytes(b"these are no packets" * 50)
        return analyse(path, **options)

    monkeypatch.setattr(results.analysis, "analyse", spoil_then_analyse)
    (trial,) = run_all(workload="script")
    assert trial.state == State.FAILED, trial.traceback
    assert "capture.pcapng.zst" in trial.message
    assert trial.artifacts.get(kind="capture").size_bytes == 1000


def test_a_capture_that_reached_its_limit_is_unusable_and_the_run_counts(
    run_all: Callable[..., list[Trial]], script_workload: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ring, "available_memory_bytes", lambda: 64 << 10)  # a quarter of it is 78 packets
    talk = f"{TALK}; print('answer 42')"
    (trial,) = run_all(workload="script", sweep={"hosts": [2]}, parameters={"script": talk})
    assert trial.state == State.FINISHED, trial.message
    assert trial.trust == "unusable"
    assert any("reached its limit after" in reason for reason in trial.trust_reasons)
    assert trial.measurements.filter(metric="elapsed_s").exists()


def test_it_keeps_the_traceback_of_a_surprise(
    run_all: Callable[..., list[Trial]], script_workload: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "run_metrics", lambda *_: 1 / 0)
    (trial,) = run_all(workload="script")
    assert trial.state == State.ERRORED
    assert "ZeroDivisionError" in trial.traceback
    assert not Lease.objects.exists()


def test_it_cancels_a_running_trial(
    run_all: Callable[..., list[Trial]], script_workload: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = Trial.start_running

    def start_then_cancel(self, **fields):
        started(self, **fields)
        self.cancel()

    monkeypatch.setattr(Trial, "start_running", start_then_cancel)
    (trial,) = run_all(workload="script", parameters={"script": "import time; time.sleep(600)"})
    assert trial.state == State.CANCELLED
    assert not Lease.objects.exists()
