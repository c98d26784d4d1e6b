"""Workloads as Python classes outside of the repository."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from experiments.workloads import plugins
from experiments.workloads.pingpong import PingPong

SOLVER = """
from __future__ import annotations
from experiments.workloads.base import Parameters, Parsed, Workload

class SolverParameters(Parameters):
    steps: int = 10

class Solver(Workload):
    slug = "solver"
    title = "Solver"
    summary = "From outside"
    programs = {}
    parameters_type = SolverParameters
    figures = ()

    def command(self, parameters, *, ranks):
        return ("solver", str(parameters.steps))

    def parse(self, output, files):
        return Parsed({})

    def estimate_s(self, parameters, *, ranks):
        return 1.0
"""


def test_it_takes_the_classes_of_a_directory(tmp_path: Path) -> None:
    (tmp_path / "solver.py").write_text(SOLVER)
    (solver,) = plugins.load(tmp_path, ()).values()
    assert (solver.slug, solver.title) == ("solver", "Solver")
    assert solver.command(solver.parameters_type(), ranks=1) == ("solver", "10")


def test_it_takes_the_classes_that_installed_packages_name(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("pingpong", "experiments.workloads.pingpong:PingPong", plugins.GROUP)
    monkeypatch.setattr(plugins, "entry_points", lambda group: [entry] if group == plugins.GROUP else [])
    assert isinstance(plugins.load(None, ())["pingpong"], PingPong)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import nothing_of_this_name", "solver.py cannot be loaded: ModuleNotFoundError"),
        (SOLVER.replace('title = "Solver"', ""), "Solver says no title"),
        (SOLVER.replace('"solver"', '"water"', 1), "there is a workload 'water' already"),
    ],
)
def test_it_says_what_is_wrong_with_a_file(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "solver.py").write_text(text)
    with pytest.raises(plugins.UnusableWorkload, match=words):
        plugins.load(tmp_path, ("water",))


def test_it_says_that_the_directory_is_missing(tmp_path: Path) -> None:
    with pytest.raises(plugins.UnusableWorkload, match="does not exist"):
        plugins.load(tmp_path / "none", ())
