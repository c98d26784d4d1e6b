"""Counters of ranks in trials: metrics, tables, the page, and reasons of absence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from dashboard.panels.trial.inside_mpi import inside_mpi
from experiments.models import State, Trial
from tests.workers.profile import tool
from tests.workers.profile.ranks import PROGRAMS
from tests.workers.profile.test_counters import OTHERS, PAGES

ROUNDS = {"name": "rounds", "regex": r"rounds (\d+)"}


def trial_of(run_all: Callable[..., list[Trial]], directory: Path, *more: Path) -> tuple[Trial, dict[str, Any]]:
    """Run the program of known page faults in the sandbox; return the panel too."""
    program = directory / "faults"
    tool.build(program, "-O1", "-pthread", "-rdynamic", PROGRAMS / "faults.c", *more, "-ldl")
    directory.chmod(0o755)
    parameters = {"program": [str(program)], "extract": [ROUNDS], "ranks_per_host": 2}
    (trial,) = run_all(workload="command", cluster="local", parameters=parameters, sweep={"hosts": [1]})
    assert trial.state == State.FINISHED, trial.message
    panel = inside_mpi(trial)
    assert panel is not None
    return trial, panel["counters"]


def test_a_trial_counts_outside_mpi_in_its_sandbox(run_all: Callable[..., list[Trial]], tmp_path: Path) -> None:
    trial, panel = trial_of(run_all, tmp_path)
    faults = trial.measurements.get(metric="processor_page_faults").value
    assert 2 * PAGES <= faults <= 2 * (PAGES + OTHERS)
    assert [row["rank"] for row in panel["rows"]] == ["0", "1"]
    has_hardware = trial.measurements.filter(metric="processor_ipc").exists()
    assert panel["has_hardware"] is has_hardware
    assert ("processor_ipc" in trial.not_available) is not has_hardware
    assert bool(panel["absent"]) is not has_hardware


def test_a_trial_with_a_processor_has_instructions_and_frequency(
    run_all: Callable[..., list[Trial]], tmp_path: Path
) -> None:
    trial, panel = trial_of(run_all, tmp_path, PROGRAMS / "pmu.c")
    values = dict(trial.measurements.values_list("metric", "value"))
    assert values["processor_instructions"] == 3000 * values["processor_page_faults"]
    assert values["processor_ipc"] == 2.0
    assert values["processor_frequency_hz"] == values["processor_cycles"] / values["processor_cpu_s"]
    assert panel["has_hardware"]
    assert not panel["absent"]
    assert {str(row["ipc"]) for row in panel["rows"]} == {"2"}
