"""Simulated experiments of known truth: head lines are rarely wrong."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy import stats

from tests.analysis.conclusions.checks import check
from tests.analysis.conclusions.truth import QUESTIONS, answered


def _tally(
    question: str, effect: float, sd: float, repetitions: int, trials: int, *, prior: bool = False
) -> Counter[str]:
    """Verdicts of so many simulated experiments; every answer passes the checks."""
    random = np.random.default_rng([7, round(100 * effect), round(1000 * sd), repetitions])
    design, verdicts = QUESTIONS[question](effect), Counter[str]()
    for _ in range(trials):
        asked = design.asked(sd, repetitions, random, prior=prior)
        given, verdict = answered(design, asked)
        assert check(given, asked) == []
        verdicts[verdict] += 1
    return verdicts


def _allowed(trials: int) -> int:
    """Return how many of ``trials`` may be wrong (99.9 %) if 5 in 100 are."""
    return int(stats.binom.ppf(0.999, trials, 0.05))


@pytest.mark.parametrize("question", QUESTIONS)
def test_it_claims_nothing_of_null_data(question):
    total = Counter[str]()
    for sd, repetitions in ((0.01, 2), (0.05, 3), (0.2, 5)):
        total += _tally(question, 1.0, sd, repetitions, 20)

    assert total["wrong"] <= _allowed(60)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("effect", [1.05, 1.2])
def test_it_is_rarely_wrong_where_effects_drown(question, effect):
    total = Counter[str]()
    for sd, repetitions in ((0.05, 2), (0.2, 3)):
        total += _tally(question, effect, sd, repetitions, 20)

    assert total["wrong"] <= _allowed(40)


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize(
    ("effect", "sd", "repetitions"), [(1.2, 0.01, 3), (2.0, 0.05, 2), (2.0, 0.05, 3), (10.0, 0.2, 3)]
)
def test_it_is_right_where_the_design_permits(question, effect, sd, repetitions):
    trials = 20

    verdicts = _tally(question, effect, sd, repetitions, trials)

    assert verdicts["right"] >= stats.binom.ppf(0.001, trials, 0.9)


@pytest.mark.parametrize("question", QUESTIONS)
def test_one_repetition_is_right_where_the_scatter_is_known(question):
    trials = 20

    verdicts = _tally(question, 10.0, 0.05, 1, trials, prior=True)

    assert verdicts["right"] >= stats.binom.ppf(0.001, trials, 0.9)


@pytest.mark.parametrize("question", ["network", "message size", "growth"])
def test_one_repetition_reports_what_is_visible_of_small_effects(question):
    trials = 20

    verdicts = _tally(question, 10.0, 0.01, 1, trials)

    assert verdicts["right"] >= stats.binom.ppf(0.001, trials, 0.9)


@pytest.mark.parametrize("question", QUESTIONS)
def test_one_repetition_claims_nothing_of_null_data(question):
    assert _tally(question, 1.0, 0.05, 1, 40)["wrong"] <= _allowed(40)
