"""Workloads in Python modules outside of the repository."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from experiments import workloads
from experiments.workloads import plugins

SOLVER = """
from experiments.workloads.base import Parameters, Parsed, WorkloadDefinition
from experiments.workloads.water import WATER

class SolverParameters(Parameters):
    steps: int = 10

def command(parameters, *, ranks):
    return ("solver", str(parameters.steps))

SOLVER = WorkloadDefinition(
    slug="solver",
    title="Solver",
    summary="From outside",
    parameters_type=SolverParameters,
    figures=(),
    command=command,
    parse=lambda output, files: Parsed({}),
    estimate_s=lambda parameters, *, ranks: 1.0,
)
"""


def test_load_takes_a_definition_of_several_names_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.py").write_text(SOLVER + "\nALIAS = SOLVER\n")
    (tmp_path / "b.py").write_text(
        "from experiments.workloads.ring import RING\nfrom rankwire_workloads_a import SOLVER\n"
    )
    entry = EntryPoint("ring", "experiments.workloads.ring:RING", plugins.GROUP)
    monkeypatch.setattr(plugins, "entry_points", lambda group: [entry])
    assert list(plugins.load(tmp_path, ())) == ["ring", "water", "solver"]


@pytest.mark.parametrize(("name", "words"), [("RING", ""), ("parse", "is no WorkloadDefinition")])
def test_load_takes_the_definitions_that_installed_packages_name(
    name: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = EntryPoint("ring", f"experiments.workloads.ring:{name}", plugins.GROUP)
    monkeypatch.setattr(plugins, "entry_points", lambda group: [entry] if group == plugins.GROUP else [])
    if words:
        with pytest.raises(plugins.UnusableWorkload, match=words):
            plugins.load(None, ())
    else:
        assert plugins.load(None, ()) == {"ring": workloads.get("ring")}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import nothing_of_this_name", "solver.py cannot be loaded: ModuleNotFoundError"),
        (SOLVER.replace('    title="Solver",\n', ""), "solver.py cannot be loaded: TypeError: .*'title'"),
        (SOLVER.replace('"solver"', '"water"'), "there is a workload 'water' already"),
    ],
)
def test_load_reports_an_unusable_file(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "solver.py").write_text(text)
    with pytest.raises(plugins.UnusableWorkload, match=words):
        plugins.load(tmp_path, workloads.built_in())


def test_load_reports_a_missing_directory(tmp_path: Path) -> None:
    with pytest.raises(plugins.UnusableWorkload, match="does not exist"):
        plugins.load(tmp_path / "none", ())
