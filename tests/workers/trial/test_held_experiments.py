"""The first failed trial of a new program holds the rest of its experiment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from experiments.models import Experiment, Hold, State, Trial
from experiments.selectors import progress_of
from experiments.specification import parse
from workers import queue, tasks

FAILING: dict[str, Any] = {"workload": "command", "certificate": "skip"}


def failing(file: Path) -> dict[str, Any]:
    """Fails until ``file`` exists."""
    return {"program": ["/bin/ls", str(file)], "hosts": 1}


def states(experiment: Experiment) -> list[str]:
    return list(experiment.trials.order_by("position", "attempt").values_list("state", flat=True))


@pytest.fixture
def held(run_all: Callable[..., list[Trial]], open_path: Path) -> Experiment:
    trials = run_all(**FAILING, parameters=failing(open_path / "there"), repetitions=4)
    return Experiment.objects.get(pk=trials[0].experiment_id)


def test_it_holds_the_rest_and_reports_why(held: Experiment) -> None:
    assert states(held) == [State.FAILED, *[State.QUEUED] * 3]
    assert progress_of([held])[held.pk].status == "held"
    assert "No such file" in held.why_held


def test_going_on_runs_the_rest_whatever_they_do(held: Experiment) -> None:
    assert queue.resume(held) == 3
    tasks.work(held.cluster_id)
    assert states(held) == [State.FAILED] * 4


def test_running_the_failed_one_again_asks_again(held: Experiment, open_path: Path) -> None:
    held.rerun_failed()
    tasks.work(held.cluster_id)
    held.refresh_from_db()
    assert (held.hold, states(held).count(State.QUEUED)) == (Hold.HELD, 3)
    (open_path / "there").touch()
    queue.run_again(held.trials.get(state=State.FAILED, superseded=False))
    tasks.work(held.cluster_id)
    held.refresh_from_db()
    assert held.hold == Hold.NONE
    assert states(held).count(State.FINISHED) == 4


def test_a_program_that_has_finished_before_is_not_held(run_all: Callable[..., list[Trial]], open_path: Path) -> None:
    there = open_path / "there"
    there.touch()
    run_all(**FAILING, parameters=failing(there))
    there.unlink()
    trials = run_all(**FAILING, parameters=failing(there), repetitions=2)
    assert [trial.state for trial in trials] == [State.FAILED, State.FAILED]


def test_rest_says_it_and_continues(held: Experiment, admin_client: Client) -> None:
    address = f"/api/v1/experiments/{held.slug}/"
    assert admin_client.get(address).json()["status"] == "held"
    assert admin_client.post(f"{address}go-on/").json() == {"queued": 3}
    assert admin_client.get(address).json()["status"] == "running"


def test_other_figures_of_a_command_are_read_without_a_new_run(
    run_all: Callable[..., list[Trial]], monkeypatch: pytest.MonkeyPatch
) -> None:
    request: dict[str, Any] = {"program": ["/bin/echo", "rate 12"], "hosts": 1}
    (trial,) = run_all(**FAILING, parameters=request)
    experiment, sent = trial.experiment, []
    monkeypatch.setattr(queue, "_send", lambda task, key: sent.append((task, key)))
    extract = [{"name": "rate", "regex": r"rate (\d+)"}]
    fields = {**experiment.specification, "parameters": {**request, "extract": extract}}
    assert queue.revise(experiment, parse(fields)) == 0
    assert sent == [(queue.REPARSE, experiment.pk)]
    tasks.read_again(experiment.pk)
    assert trial.measurements.get(metric="command.rate").value == 12.0
    assert experiment.configurations.count() == experiment.trials.count() == 1


def test_three_identical_failures_in_succession_hold_the_rest(
    run_all: Callable[..., list[Trial]], open_path: Path
) -> None:
    """Of a program that has finished before; one failure less holds nothing."""
    there = open_path / "there"
    there.touch()
    run_all(**FAILING, parameters=failing(there))
    there.unlink()
    trials = run_all(**FAILING, parameters=failing(there), repetitions=5)
    experiment = Experiment.objects.get(pk=trials[0].experiment_id)
    assert states(experiment) == [State.FAILED] * 3 + [State.QUEUED] * 2
    assert experiment.hold == Hold.HELD
    assert "No such file" in experiment.why_held
    assert queue.resume(experiment) == 2
    tasks.work(experiment.cluster_id)
    assert states(experiment) == [State.FAILED] * 5
