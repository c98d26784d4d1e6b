"""Counters of ranks in trials: metrics, tables, the page, and reasons of absence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from dashboard.panels.trial.inside_mpi import inside_mpi
from experiments.models import State, Trial
from tests.experiments import factories
from tests.workers.profile import tool
from tests.workers.profile.counting import OTHERS, PAGES
from tests.workers.profile.ranks import PROGRAMS

ROUNDS = {"name": "rounds", "regex": r"rounds (\d+)"}
SECONDS = {"name": "seconds", "regex": r"seconds (\S+)", "unit": "s", "direction": "lower"}


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
    assert trial.measurements.get(metric="io_requested_read_bytes").value > 0, "of files of libraries"
    assert trial.measurements.filter(metric__in=("io_read_bytes", "io_written_bytes")).count() == 2
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
    charts = {name: figure["data"][0] for name, figure in panel["views"]}
    assert list(charts) == ["IPC", "Frequency"]
    assert (charts["IPC"]["x"], charts["IPC"]["y"]) == ([0, 1], [2.0, 2.0])


RULES = {
    "instruction_scalability": "instructions_grow",
    "ipc_scalability": "ipc_falls",
    "frequency_scalability": "frequency_falls",
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("shared", "factor", "truth"),
    [
        ("repeat", "instruction_scalability", 1 / 2),
        ("memory", "ipc_scalability", 1 / 2),
        ("clock", "frequency_scalability", 2 / 3),
    ],
)
def test_the_factor_that_was_made_is_in_the_split_and_the_findings(
    shared: str, factor: str, truth: float, run_all: Callable[..., list[Trial]], open_path: Path
) -> None:
    program = open_path / "shared"
    tool.build(program, "-O1", "-rdynamic", PROGRAMS / "shared.c", PROGRAMS / "pmu.c", "-ldl")
    parameters = {"program": [str(program), shared], "extract": [SECONDS], "ranks_per_host": 1}
    trials = run_all(workload="command", parameters=parameters, sweep={"hosts": [1, 2]}, repetitions=3)
    assert {trial.state for trial in trials} == {State.FINISHED}, [trial.message for trial in trials]
    browser = Client()
    browser.force_login(factories.person("ada", "viewer"))
    address = f"/api/v1/experiments/{trials[0].experiment.slug}"
    (table,) = browser.get(f"{address}/efficiencies/").json()["tables"]
    two = table["sizes"][1]
    assert two[factor] == pytest.approx(truth, rel=0.03)
    if factor == "instruction_scalability":
        assert two["ipc_scalability"] == pytest.approx(1.0, rel=0.01)
    elif factor == "ipc_scalability":
        assert two["instruction_scalability"] == pytest.approx(1.0, rel=0.03)
    product = two["instruction_scalability"] * two["ipc_scalability"] * two["frequency_scalability"]
    assert product * two["core_scalability"] == pytest.approx(two["computation_scalability"])
    findings = browser.get(f"{address}/findings/").json()["findings"]
    by_rule = {finding["rule"]: finding for finding in findings if finding["rule"] in RULES.values()}
    assert RULES[factor] in by_rule
    first, last = (row["value"] for row in by_rule[RULES[factor]]["evidence"])
    assert (first / last if factor == "instruction_scalability" else last / first) == pytest.approx(truth, rel=0.03)
    assert factor == "frequency_scalability" or set(by_rule) == {RULES[factor]}, "an idle factor has no finding"
