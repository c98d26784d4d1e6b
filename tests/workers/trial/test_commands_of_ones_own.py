"""A command with threads and patterns of success, run on the test-bed."""

from __future__ import annotations

from collections.abc import Callable

from experiments.models import State, Trial

THREADS = {"name": "threads", "regex": r"^(\d+)$"}
ECHO = {"program": ["/usr/bin/printenv", "OMP_NUM_THREADS"], "extract": [THREADS]}


def test_its_ranks_have_the_threads_that_were_requested(run_all: Callable[..., list[Trial]]) -> None:
    request = {"parameters": {**ECHO, "hosts": 2}, "certificate": "skip"}
    one, three = run_all(workload="command", sweep={"threads": [1, 3]}, **request)
    assert (one.state, three.state) == (State.FINISHED, State.FINISHED), one.message + three.message
    answer = [trial.measurements.get(metric="command.threads").value for trial in (one, three)]
    assert answer == [1.0, 3.0]
    assert one.conditions["oversubscription"].startswith("2 virtual hosts on ")
    assert three.conditions["oversubscription"].endswith(", 2 ranks with 3 threads each")


def test_a_program_that_says_that_it_failed_and_returns_0_has_failed(run_all: Callable[..., list[Trial]]) -> None:
    parameters = {"program": ["/usr/bin/echo", "Verification = FAILED"], "failure": "FAILED"}
    (trial,) = run_all(workload="command", parameters=parameters, sweep={"hosts": [1]}, certificate="skip")
    assert trial.state == State.FAILED
    assert trial.message.startswith("the program says that it failed, in line 1: 'Verification = FAILED'")


def test_a_figure_on_standard_error_is_not_read_and_the_message_says_so(run_all: Callable[..., list[Trial]]) -> None:
    time = {"name": "time_s", "regex": r"time: (\S+)"}
    parameters = {"program": ["/bin/sh", "-c", "echo time: 1.5 >&2"], "extract": [time]}
    (trial,) = run_all(workload="command", parameters=parameters, sweep={"hosts": [1]}, certificate="skip")
    assert trial.state == State.FAILED
    assert trial.message.startswith(
        "time_s is not in the output (its pattern matches no line): found on standard error; only standard output is read."
    )
