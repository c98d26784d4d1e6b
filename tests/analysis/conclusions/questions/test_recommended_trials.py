"""Recommended trials of inconclusive answers: points, number, duration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from analysis.conclusions import Accepted, answer
from tests.analysis.conclusions.designs import BYTES, DELAY, GFLOPS, HOSTS, JOBS, METHOD, MOLECULES, RATE, asks, checked
from tests.analysis.conclusions.truth import QUESTIONS

WIDE = (0.6, 1.0, 1.7)
"""Three repetitions that scatter by half of their value."""
ROWS = [Accepted(c, 4.0, None, False, None, 0.5, 4, "link") for c in (1e7, 1e8)]
WALLS = {(c, n): 1.0 * n**0.84 for c in (1e7, 1e8) for n in (1, 4, 16)}
OPEN: dict[str, dict[str, Any]] = {
    "scale": {"factors": [HOSTS], "typical": {1: 10.0, 2: 9.0, 4: 8.5}},
    "weak scale": {"factors": [HOSTS], "typical": {1: 10.0, 2: 11.0, 4: 12.0}, "weak": True},
    "network": {"factors": [DELAY], "typical": {0.0: 1.0, 0.016: 1.2}},
    "load and network": {"factors": [RATE, JOBS], "typical": WALLS, "accepted": ROWS},
    "steps": {"factors": [METHOD], "typical": {"a": 1.0, "b": 1.1, "c": 1.2}, "steps": True, "deciding": GFLOPS},
    "message size": {"factors": [BYTES], "typical": {64 * 8**k: 1.0 + 0.01 * k for k in range(5)}},
    "growth": {"factors": [MOLECULES], "typical": {100: 1.0, 200: 1.1, 400: 1.2}},
    "treatment": {"factors": [METHOD], "typical": {"pull": 1.0, "tree": 1.1}},
    "scale and treatment": {"factors": [HOSTS, METHOD], "typical": {(2, "pull"): 1.0, (2, "tree"): 1.1}},
}


@pytest.mark.parametrize("question", OPEN)
def test_an_open_answer_says_the_recommended_trials_and_how_long_that_takes(question: str) -> None:
    result = checked(asks(**OPEN[question], repetitions=WIDE, trial_s=3.0))

    assert (result.question, result.strength) == (question, "open")
    assert result.missing is not None
    assert "more repetition" in result.missing.statement
    assert len(result.missing.points) >= 2
    assert result.missing.seconds == pytest.approx(3.0 * sum(more for _, more in result.missing.points))


@pytest.mark.parametrize("question", [row for row in OPEN if row != "load and network"])
def test_what_was_printed_is_not_to_be_repeated(question: str) -> None:
    assert answer(asks(**OPEN[question], published=True)).missing is None


@pytest.mark.parametrize("question", ["scale", "treatment", "weak scale", "network", "steps"])
def test_the_recommended_repetitions_settle_the_answer(question: str) -> None:
    design, sd, random = QUESTIONS[question](1.05 if question == "weak scale" else 1.2), 0.05, np.random.default_rng(3)
    results = []
    while len(results) < 20:
        experiment = design.simulate(sd, 2, random)
        missing = answer(experiment).missing
        if missing is not None and "over" not in missing.statement:
            results.append(answer(design.continued(experiment, missing.points, sd, random)).missing is None)
    assert sum(results) >= 16


def test_repetitions_that_may_never_settle_it_are_no_promise() -> None:
    result = answer(asks([METHOD], {"a": 1.0, "b": 1.01, "c": 1.02}, repetitions=WIDE, steps=True, deciding=GFLOPS))

    assert result.missing is not None
    assert result.missing.statement.count("repetitions") == 1
    assert "over 20 more repetitions" in result.missing.statement
