"""script/run and script/manage: the laboratory without a browser."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.config.processes import is_alive, processes_of, wait_for
from tests.script.programs import Script

# A start builds what is missing and waits for all of it, and the machine may be busy.
pytestmark = pytest.mark.timeout(240)

QUICK = """
name: Two points
workload: water
parameters: {molecules: 64, steps: 20}
sweep: {hosts: [1, 2]}
cluster: testbed
repetitions: 1
time_limit_s: 40
"""
HEADLINE = {"cpu_s", "elapsed_s", "packets", "interarrival_mean_s", "throughput_Bps", "packet_intensity_pps"}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """The working directory, with specifications."""
    (tmp_path / "two-points.yaml").write_text(QUICK)
    (tmp_path / "long.yaml").write_text(QUICK.replace("steps: 20", "steps: 5000000"))
    (tmp_path / "wrong.yaml").write_text(QUICK.replace("molecules: 64", "molecules: -64"))
    return tmp_path


def test_it_runs_an_experiment_to_its_end_and_leaves_nothing_running(
    start: Callable[..., Script], var: Path, directory: Path
) -> None:
    run = start("run", "two-points.yaml", "--json", "result.json", cwd=directory)
    assert run.end() == 0, run.output
    assert not processes_of(var)
    trials = json.loads((directory / "result.json").read_text())["trials"]
    assert [trial["state"] for trial in trials] == ["finished", "finished"]
    assert [trial["parameters"]["hosts"] for trial in trials] == [1, 2]
    assert set(trials[1]["metrics"]) >= HEADLINE
    assert "Elapsed time" in run.output
    assert "Limitations:" in run.output  # the findings close it


def test_it_prints_each_round_of_a_goal_with_its_reason(start: Callable[..., Script], directory: Path) -> None:
    written = QUICK.replace("[1, 2]", "[1]").replace("repetitions: 1", "repetitions: {at_least: 2, at_most: 3}")
    goal = "disturbed: keep\ngoal: {until: 0.1 %, budget: {trials: 9}}\n"
    (directory / "goal.yaml").write_text(written + goal)
    run = start("run", "goal.yaml", cwd=directory)
    assert run.end() == 0, run.output
    assert re.search(r"round 1, 2 trials: next round\. .*0\.1", run.output), run.output
    assert "round 2, 1 trial: all repetitions made." in run.output


def test_it_cancels_its_trials_at_ctrl_c_and_leaves_nothing_running(
    start: Callable[..., Script], var: Path, directory: Path
) -> None:
    run = start("run", "long.yaml", cwd=directory)
    this = psutil.Process(run.process.pid)
    wait_for(lambda: any(is_named(process, "lmp") for process in descendants(this)), timeout_s=120)
    family = descendants(this)
    assert run.end(signal.SIGINT) == 130, run.output
    assert not processes_of(var)
    assert not [process for process in family if is_alive(process)]
    assert "1 trials cancelled" in run.output or "2 trials cancelled" in run.output


def test_it_refuses_a_wrong_specification_at_its_line(start: Callable[..., Script], directory: Path) -> None:
    run = start("run", "wrong.yaml", cwd=directory)
    assert run.end() == 2
    assert "molecules" in run.output
    assert "line 4" in run.output


COMMAND = """
import sys
from experiments.models import Experiment
print(Experiment.objects.filter(published=True).count(), "published")
sys.exit(3)
"""


def test_it_runs_any_command_on_an_up_to_date_database_and_hands_its_status_on(
    start: Callable[..., Script], var: Path
) -> None:
    manage = start("manage", "shell", "--no-imports", "-c", COMMAND)
    assert manage.end() == 3, manage.output
    assert re.search(r"^[1-9]\d* published$", manage.output, re.MULTILINE)
    assert not processes_of(var)


def is_named(process: psutil.Process, name: str) -> bool:
    with suppress(psutil.NoSuchProcess):  # it may end while one looks
        return bool(process.name() == name)
    return False


def descendants(process: psutil.Process) -> list[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        return [child for child in process.children(recursive=True) if is_alive(child)]
    return []
