"""Programs that take all they can get are stopped at their limit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from analysis.numbers import size
from experiments.models import State, Trial
from workers.trial import measure

GOOD = "print('answer 42', flush=True)"


@pytest.fixture(params=["testbed", "local"])
def ended(
    request: pytest.FixtureRequest, run_all: Callable[..., list[Trial]], script_workload: object
) -> Callable[..., Trial]:
    """Runs one rank of a script to its end, on one cluster after the other."""

    def run(script: str) -> Trial:
        parameters = {"script": script, "hosts": 1}
        (trial,) = run_all(
            workload="script", cluster=request.param, parameters=parameters, certificate="skip", time_limit_s=60
        )
        return trial

    return run


def test_a_fork_bomb_ends_at_the_limit_of_processes(ended: Callable[..., Trial], settings: Any) -> None:
    settings.TRIAL_PROCESSES = 300
    trial = ended("""
import os, time
while True:
    try:
        os.fork()
    except OSError:
        time.sleep(0.1)
""")
    assert trial.state == State.FAILED, trial.traceback
    assert "It started all of the 300 processes that a trial may have at once." in trial.message
    assert ended(GOOD).state == State.FINISHED


def test_programs_that_take_memory_together_end_at_its_limit(ended: Callable[..., Trial], settings: Any) -> None:
    settings.TRIAL_MEMORY_BYTES = 400 << 20
    trial = ended("""
import os, time
[os.fork() for _ in range(2)]
kept = os.urandom(1 << 20) * 150
time.sleep(40)
""")
    assert trial.state == State.FAILED, trial.traceback
    assert (
        f"It took more than the {size(400 << 20)} of memory that a trial may have: RANKWIRE_TRIAL_MEMORY_MIB"
        in trial.message
    )


def test_one_program_is_refused_more_memory_than_a_trial_may_have(ended: Callable[..., Trial], settings: Any) -> None:
    settings.TRIAL_MEMORY_BYTES = 400 << 20
    trial = ended("kept = b'x' * (1 << 30)")
    assert trial.state == State.FAILED, trial.traceback
    assert "MemoryError" in trial.message


def test_a_program_that_ends_at_the_limit_of_its_memory_fails_for_lack_of_memory(
    ended: Callable[..., Trial], settings: Any
) -> None:
    settings.TRIAL_MEMORY_BYTES = 400 << 20
    trial = ended("""
import os
kept = []
try:
    while True:
        kept.append(b"x" * (4 << 20))
except MemoryError:
    os.abort()
""")
    assert trial.state == State.FAILED, trial.traceback
    assert "Memory ran out" in trial.message
    assert "RANKWIRE_TRIAL_MEMORY_MIB" in trial.message


def test_many_files_end_at_the_limit_of_the_disk(ended: Callable[..., Trial], settings: Any) -> None:
    settings.TRIAL_DISK_BYTES = 8 << 20
    trial = ended("""
import os, time
os.makedirs("a/b")
for number in range(8):
    open(f"a/b/{number}", "wb").write(os.urandom(4 << 20))
time.sleep(40)
""")
    assert trial.state == State.FAILED, trial.traceback
    assert f"It wrote more than the {size(8 << 20)} that a trial may have on disk." in trial.message


def test_one_file_ends_at_the_limit_of_the_disk(ended: Callable[..., Trial], settings: Any) -> None:
    settings.TRIAL_DISK_BYTES = 8 << 20
    trial = ended(
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_DFL); open('a', 'wb').write(bytes(16 << 20))"
    )
    assert trial.state == State.FAILED, trial.traceback
    assert f"It wrote a file of more than the {size(8 << 20)} that a trial may have on disk." in trial.message


def test_the_middle_of_an_endless_output_takes_no_disk(
    ended: Callable[..., Trial], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.OUTPUT_LIMIT_BYTES = 1 << 20
    taken = []

    def look(file: Any, **options: Any) -> None:
        thin_out(file, **options)
        taken.append(file.stat().st_blocks * 512)

    thin_out = measure.thin_out
    monkeypatch.setattr(measure, "thin_out", look)
    trial = ended(f"{GOOD}\nimport time\nfor _ in range(60): print('x' * (1 << 20), flush=True)\ntime.sleep(2)")
    assert trial.state == State.FINISHED, trial.message + trial.traceback
    assert taken[-2] < 8 << 20
    stored = trial.artifacts.get(name="stdout.txt").file
    assert stored.stat().st_size < 2 << 20
    assert stored.read_text().startswith("answer 42")
