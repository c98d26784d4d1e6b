"""A workload for tests: every rank really runs a given Python script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from experiments.errors import OutputError
from experiments.workloads.base import FigureOfMerit, Parameters, Parsed, WorkloadDefinition


class ScriptParameters(Parameters):
    """The text of the script."""

    script: str = "print('answer 42')"


def command(parameters: ScriptParameters, *, ranks: int) -> tuple[str, ...]:
    return ("/usr/bin/python3", "-c", parameters.script)


def parse(output: str, files: Mapping[str, str]) -> Parsed:
    answers = [line.split()[1] for line in output.splitlines() if line.startswith("answer ")]
    if not answers:
        raise OutputError("The script gave no answer")
    ranks = [int(line.split()[1]) for line in output.splitlines() if line.startswith("ranks ")]
    return Parsed({"script.answer": float(answers[0])}, ran_with={"ranks": ranks[0]} if ranks else {})


SCRIPT: Final = WorkloadDefinition(
    slug="script",
    title="Script",
    summary="For tests",
    programs={"python3": "python3"},
    parameters_type=ScriptParameters,
    figures=(FigureOfMerit("script.answer", "Answer", "1", "higher", "What it printed."),),
    command=command,
    parse=parse,
    estimate_s=lambda parameters, *, ranks: 1.0,
)
"""Runs ``script``; a good run prints ``answer <number>``, and may print ``ranks <number>``."""
