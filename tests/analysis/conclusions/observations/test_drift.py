"""Drift over the order of trials is found, and lowers the strength."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from analysis.conclusions import (
    Answer,
    ExperimentQuestion,
    Finding,
    Report,
    answer,
    experiment_intervals,
    facts,
    key_figures,
)
from analysis.conclusions.answer import Figure
from analysis.conclusions.observations.drift import drift_of
from analysis.conclusions.rules.report import Verdict, find
from analysis.scaling import Point, Study
from analysis.statistics import Interval
from tests.analysis.conclusions.checks import check
from tests.analysis.conclusions.designs import HOSTS, TIME
from tests.analysis.conclusions.truth import QUESTIONS, Order, places

SLOPE = 0.02


def experiment(
    order: Order, *, drift: float, times: dict[int, float] | None = None, repetitions: int = 3, sd: float = 0.005
) -> ExperimentQuestion:
    """A sweep over hosts whose trials are slower by ``drift`` each."""
    random = np.random.default_rng(7)
    times = times or dict.fromkeys(range(1, 6), 1.0)
    points = []
    for (hosts, time), ran in zip(times.items(), places(len(times), repetitions, order, random), strict=True):
        values = time * np.exp(random.normal(0, sd, repetitions) + drift * np.array(ran))
        points.append(Point({"hosts": hosts}, {"elapsed_s": list(values)}, order={"elapsed_s": ran}))
    return ExperimentQuestion(points, TIME, [HOSTS])


def answered(question: ExperimentQuestion) -> Answer:
    result = answer(question)
    assert check(result, question) == []
    return result


def ends(of: Figure | Interval | None) -> tuple[float, float]:
    assert of is not None
    assert of.low is not None
    assert of.high is not None
    return of.low, of.high


def test_a_drift_of_sequential_trials_makes_no_claim_about_the_size() -> None:
    question = experiment("sequential", drift=SLOPE)

    result, unaware = (
        answered(question),
        answered(replace(question, points=[replace(p, order={}) for p in question.points])),
    )

    assert (unaware.strength, result.strength) == ("firm", "open")
    low, high = ends(result.drift)
    assert low < SLOPE < high
    assert result.missing is not None
    assert dict.fromkeys(range(1, 6), 3) == {p["hosts"]: more for p, more in result.missing.points}


def test_rounds_after_sequential_trials_remove_the_drift() -> None:
    question = experiment("sequential", drift=SLOPE)
    points = []
    for point, ran in zip(question.points, places(5, 3, "interleaved", np.random.default_rng(1)), strict=True):
        later = [15 + position for position in ran]
        values = [
            *point.values["elapsed_s"],
            *np.exp(SLOPE * np.array(later) + 0.005 * np.random.default_rng(2).normal(0, 1, 3)),
        ]
        points.append(
            replace(point, values={"elapsed_s": values}, order={"elapsed_s": [*point.order["elapsed_s"], *later]})
        )

    result = answered(replace(question, points=points))

    assert result.strength == "moderate"
    assert {f.value for f in result.figures if f.name in ("best size", "as good")} == {1, 2, 3, 4, 5}


def test_an_effect_beyond_the_drift_is_still_claimed_of_sequential_trials_but_not_conclusive() -> None:
    result = answered(experiment("sequential", drift=SLOPE, times={1: 10.0, 2: 5.0, 4: 2.5, 8: 5.0}))

    assert result.strength == "moderate"
    assert result.figure("best size").value == 4  # type: ignore[union-attr]


def test_a_drift_of_interleaved_trials_is_removed_from_the_comparison() -> None:
    question = experiment("interleaved", drift=SLOPE, times={1: 1.0, 2: 1.0, 3: 1.0, 4: 1.0, 5: 1.1})

    result = answered(question)

    assert result.strength == "moderate"
    low, high = ends(result.figure("times the best", hosts=5))
    assert 1 < low < 1.1 < high
    assert {f.value for f in result.figures if f.name in ("best size", "as good")} == {1, 2, 3, 4}


def test_tables_keep_the_values_as_measured_and_take_the_ratio_of_the_answer() -> None:
    question = experiment("interleaved", drift=SLOPE)
    middle = question.points[0].median("elapsed_s") or 0.0

    held = experiment_intervals(question)

    low, high = ends(held.value({"hosts": 1}))
    assert low <= middle <= high
    low, high = ends(held.ratio({"hosts": 5}, {"hosts": 1}))
    assert low < 1 < high < 1.04


def test_a_claim_that_a_drift_within_the_scatter_would_explain_is_tentative() -> None:
    question = experiment("sequential", drift=0.0, times={1: 1.0, 2: 1.005, 3: 1.01, 4: 1.015, 5: 1.02})

    assert answered(question).strength == "moderate"
    assert answered(replace(question, points=[replace(p, order={}) for p in question.points])).strength == "firm"


@pytest.mark.parametrize("order", ["interleaved", "sequential"])
def test_steady_trials_keep_a_conclusive_answer(order: Order) -> None:
    result = answered(experiment(order, drift=0.0, times={1: 10.0, 2: 5.0, 4: 2.5, 8: 5.0}))

    assert result.strength == "firm"
    assert result.drift is None


@pytest.mark.parametrize("order", ["interleaved", "sequential"])
def test_a_drift_is_a_fact_with_its_size_over_the_experiment(order: Order) -> None:
    question = experiment(order, drift=SLOPE)
    report = find(Study(question.points))

    fact = next(f for f in facts(question, answer(question), report) if f.rule == "drift")

    per_trial, whole = (e.value for e in fact.evidence)
    assert per_trial == pytest.approx(SLOPE, rel=0.2)
    assert whole == pytest.approx(np.expm1(14 * SLOPE), rel=0.2)
    advised = facts(replace(question, is_interleaved=True), answer(question), report)
    assert "interleaved" not in next(f for f in advised if f.rule == "drift").next_step


@pytest.mark.parametrize(
    ("order", "times", "strength"),
    [
        ("sequential", None, "weak"),
        ("sequential", {1: 10.0, 2: 5.0, 4: 2.5, 8: 5.0}, "moderate"),
        ("interleaved", {1: 10.0, 2: 5.0, 4: 2.5, 8: 5.0}, "strong"),
    ],
)
def test_facts_about_the_sizes_are_no_stronger_than_the_answer(
    order: Order, times: dict[int, float] | None, strength: str
) -> None:
    question = experiment(order, drift=SLOPE, times=times)

    finding = Finding("packet_step", "scaling", "Packets rise.", "strong", (), "packets", "Look.")

    output = facts(question, answer(question), Report("", Verdict("limited", ""), (finding,), ()))

    assert {f.strength for f in output if f.rule == "packet_step"} == {strength}


def test_trials_without_a_drift_have_no_such_fact() -> None:
    question = experiment("interleaved", drift=0.0)

    assert all(f.rule != "drift" for f in facts(question, answer(question), find(Study(question.points))))


@pytest.mark.parametrize(
    "change",
    [{"published": True}, {"points": [replace(p, order={}) for p in experiment("interleaved", drift=0).points]}],
)
def test_nothing_is_judged_without_the_order_of_trials(change: dict[str, Any]) -> None:
    assert drift_of(replace(experiment("sequential", drift=SLOPE), **change)) is None


def test_single_repetitions_show_no_drift() -> None:
    assert drift_of(experiment("sequential", drift=SLOPE, repetitions=1)) is None


def test_the_slope_is_that_of_a_regression_with_a_constant_for_each_point() -> None:
    question = experiment("randomised", drift=SLOPE, sd=0.01)
    y = np.log(np.concatenate([p.values["elapsed_s"] for p in question.points]))
    positions = np.concatenate([p.order["elapsed_s"] for p in question.points])
    design = np.column_stack([np.kron(np.eye(5), np.ones((3, 1))), positions])
    coefficients, squares, _, _ = np.linalg.lstsq(design, y, rcond=None)
    error = np.sqrt(squares[0] / 9 * np.linalg.inv(design.T @ design)[-1, -1])

    drift = drift_of(question)

    assert drift is not None
    assert (drift.slope, drift.error, drift.freedom) == pytest.approx((coefficients[-1], error, 9))


@pytest.mark.parametrize("order", ["sequential", "interleaved", "randomised"])
@pytest.mark.parametrize("drift", [0.002, 0.005, 0.01, 0.02])
def test_conclusive_answers_are_rarely_wrong_under_a_drift(order: Order, drift: float) -> None:
    random, false, trials = np.random.default_rng(35), 0, 0
    for question in ("scale", "treatment", "growth", "network"):
        design = QUESTIONS[question](1.0)
        for sd, repetitions in ((0.01, 3), (0.05, 2)):
            for _ in range(10):
                result = answer(design.simulate(sd, repetitions, random, order=order, drift=drift))
                false += result.strength == "firm" and design.judge(result) == "wrong"
                trials += 1

    assert false <= stats.binom.ppf(0.999, trials, 0.05)


def test_values_without_a_drift_name_their_base() -> None:
    times = {1: 4.0, 2: 2.1, 4: 1.4, 8: 1.3}
    with_drift, steady = (experiment("interleaved", drift=drift, times=times, sd=0.1) for drift in (SLOPE * 3, 0.0))

    result, other = answered(with_drift), answered(steady)

    assert (result.is_without_drift, other.is_without_drift) == (True, False)
    assert " without drift (" in result.sentence
    assert "without drift" not in other.sentence
    names = [name for name, _ in key_figures(result, [HOSTS])]
    assert {"Elapsed time, without drift", "Best median, without drift"} <= set(names)
    assert "Elapsed time" in [name for name, _ in key_figures(other, [HOSTS])]


def test_energies_beside_values_without_a_drift_are_named_as_measured() -> None:
    times = {1: 4.0, 2: 2.1, 4: 1.4, 8: 1.3}
    question = experiment("interleaved", drift=SLOPE * 3, times=times, sd=0.1)
    for point in question.points:
        point.values["energy_j"] = [50.0 * point.parameters["hosts"] for _ in question.values(point)]

    result = answered(question)

    assert result.is_without_drift
    names = [name for name, _ in key_figures(result, [HOSTS])]
    assert [name for name in names if name.startswith(("Elapsed time", "Energy"))] == [
        "Elapsed time, without drift",
        "Energy",
    ]
