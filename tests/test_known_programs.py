"""The judge of the known programs, and what it asks of the product."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.known_programs.judge import contradictions, judge, true_causes, truth_of
from benchmarks.known_programs.kinds import FIGURES, KINDS, specification
from experiments.specification import parse

OWN = dict.fromkeys(FIGURES, 0.0)


def trial(ranks: int, elapsed_s: float, **own_figures: float) -> dict[str, Any]:
    figures = {f"command.{name}": value for name, value in {**OWN, **own_figures}.items()}
    return {"id": 1, "ranks": ranks, "trust": "good", "metrics": {"elapsed_s": elapsed_s, **figures}}


POLLING = [
    trial(1, 0.9, loop_s=0.6, computing_s=0.6, busiest_computing_s=0.6, busiest_outside_s=0.6),
    trial(2, 1.9, loop_s=1.5, computing_s=0.3, busiest_computing_s=0.3, busiest_outside_s=0.3, mpi_s=1.2),
]


def answer(*parts: str, **figures: float) -> dict[str, Any]:
    return {
        "causes": [{"part": part, "explains": 1.0} for part in parts],
        "figures": [{"name": name.replace("_", " "), "value": value} for name, value in figures.items()],
    }


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_each_specification_is_valid_and_reads_what_the_program_prints(kind: Any) -> None:
    spec = parse(specification(kind, Path("/programs/known")))
    assert {row["name"] for row in spec.parameters["extract"]} == set(FIGURES)


def test_truth_is_the_change_by_the_programs_own_clocks() -> None:
    truth = truth_of(KINDS["polling"], POLLING)
    assert truth == pytest.approx(
        {"computing": -0.3, "imbalance": 0, "descheduled": 0, "blocked": 0, "communication": 1.2}
    )
    assert true_causes(KINDS["polling"], truth) == {"communication"}
    assert true_causes(KINDS["sleeping"], truth) == {"communication"}


@pytest.mark.parametrize(
    ("fields", "verdict"),
    [
        (answer("communication", "computing"), "right"),
        (answer("computing", "communication"), "OPPOSITE"),
        (answer(""), "silent"),
        (answer(), "silent"),
    ],
)
def test_the_first_cause_is_judged(fields: dict[str, Any], verdict: str) -> None:
    assert judge(KINDS["polling"], fields, truth_of(KINDS["polling"], POLLING)).verdict == verdict


def test_a_minor_part_is_not_the_opposite() -> None:
    truth = {"computing": 0.2, "communication": 0.8}
    assert judge(KINDS["polling"], answer("computing"), truth).verdict == "other"


@pytest.mark.parametrize(
    ("fields", "verdict"),
    [(answer(largest_difference=0.02), "right"), (answer(), "silent"), (answer("computing"), "OPPOSITE")],
)
def test_a_program_without_an_effect_has_no_cause(fields: dict[str, Any], verdict: str) -> None:
    assert judge(KINDS["flat"], fields, {}).verdict == verdict


def test_other_load_may_make_a_cause_of_its_own() -> None:
    assert judge(KINDS["flat"], answer("descheduled"), {"computing": 0.0, "descheduled": 0.5}).verdict == "right"
    assert judge(KINDS["flat"], answer("computing"), {"computing": 0.0, "descheduled": 0.5}).verdict == "OPPOSITE"


def test_launch_overhead_counts_only_if_the_elapsed_time_decides() -> None:
    assert truth_of(KINDS["launch"], POLLING)["launch"] == pytest.approx(0.1)
    assert "launch" not in truth_of(KINDS["polling"], POLLING)


def test_numbers_that_the_program_contradicts_are_listed() -> None:
    (_, one) = POLLING
    counted = {"mpi_on_cpu_share": 0.5, "mpi_blocked_share": 0.25, "mpi_window_s": 1.6, "mpi_messages": 0.0}
    assert not list(contradictions([{**one, "metrics": {**one["metrics"], **counted}}]))
    wrong = {**counted, "mpi_blocked_share": 0.1, "mpi_messages": 3.0}
    assert len(list(contradictions([{**one, "metrics": {**one["metrics"], **wrong}}]))) == 2
