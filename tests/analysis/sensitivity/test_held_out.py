"""Every measured link predicted from the others."""

from __future__ import annotations

import pytest

from analysis.sensitivity import Run, Runs, held_out
from tests.analysis.sensitivity.programs import HERE, STAR, Program


def test_a_program_that_follows_the_model_is_predicted_within_its_intervals() -> None:
    studies = [held_out(Program().runs(0.03, repetitions=3, seed=seed)) for seed in range(5)]
    outcomes = [row for study in studies for row in study]
    delays = [study.prediction.link.delay_s for study in studies[0]]
    assert delays == pytest.approx(sorted(link.delay_s for link in STAR))
    inside, trials = sum(outcome.inside for outcome in outcomes), sum(len(outcome.seconds) for outcome in outcomes)
    assert trials == 5 * 3 * len(STAR)
    assert 0.82 <= inside / trials <= 0.97
    assert max(abs(outcome.error) for outcome in outcomes) < 0.15


def test_a_link_that_does_not_follow_is_outside_with_its_error() -> None:
    program = Program()
    odd = STAR[2]
    runs = [
        Run(link, program.elapsed(link) * (2 if link == odd else 1) * scatter)
        for link in STAR
        for scatter in (0.99, 1.01)
    ]
    outcome = next(row for row in held_out(Runs.of(runs)) if row.prediction.link.delay_s == odd.delay_s)
    assert outcome.inside == 0
    assert outcome.error == pytest.approx(-0.5, abs=0.05)


def test_links_that_the_others_say_nothing_of_are_left_out() -> None:
    assert held_out(Runs.of([Run(HERE, 3.0 + 0.01 * number) for number in range(6)])) == []
