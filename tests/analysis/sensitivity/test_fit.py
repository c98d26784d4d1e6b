"""The fitted model recovers known programs and claims nothing else."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from analysis.sensitivity import Link, Quantity, Run, Runs, fit, quantity
from analysis.sensitivity.fit import _cells, _Links, _Parts, _weights
from tests.analysis.sensitivity.programs import STAR, Program

PROGRAMS = [
    Program(messages=messages, bits=bits, hidden_delay_s=delay, hidden_inverse_rate=inverse_rate)
    for messages, bits, delay, inverse_rate in itertools.product(
        (500, 2000, 4300), (30e6, 250e6), (0, 0.2e-3), (0, 1 / 300e6)
    )
]
BETWEEN = Link(0.3e-3, 200e6)
LOSSY = [*STAR, Link(30e-6, 1e9, 0.01), Link(1e-3, 1e9, 0.01)]


def holds(output: Quantity, truth: float) -> bool:
    low, high = output.interval.low, output.interval.high
    return (low is None or low <= truth) and (high is None or truth <= high)


def test_its_intervals_hold_the_truth_in_95_of_100_cases() -> None:
    random = np.random.default_rng(16)
    held: dict[str, list[bool]] = {}
    for number in range(120):
        program = PROGRAMS[number % len(PROGRAMS)]
        fitted = fit(program.runs(float(random.choice([0.01, 0.03, 0.08])), seed=random))
        for name, output, truth in (
            ("messages", quantity(fitted.draws.messages), program.messages),
            ("bits", quantity(fitted.draws.bits), program.bits),
            ("hidden delay", fitted.hidden_delay, program.hidden_delay_s),
            ("hidden rate", fitted.hidden_inverse_rate, program.hidden_inverse_rate),
            ("time between the links", quantity(fitted.draws.elapsed(BETWEEN)), program.elapsed(BETWEEN)),
        ):
            held.setdefault(name, []).append(holds(output, truth))
    shares = {name: np.mean(cases) for name, cases in held.items()}
    assert all(share >= 0.88 for share in shares.values()), shares
    assert np.mean(list(shares.values())) <= 0.99, shares


def test_it_finds_a_program_without_scatter_exactly() -> None:
    program = Program(messages=4300, bits=250e6, hidden_delay_s=0.2e-3)
    fitted = fit(program.runs(0.0))
    assert np.median(fitted.draws.messages) == pytest.approx(4300, rel=0.01)
    assert np.median(fitted.draws.bits) == pytest.approx(250e6, rel=0.02)
    assert fitted.hidden_delay.value == pytest.approx(0.2e-3, rel=0.02)
    assert fitted.delay_bends


def false_claims(program: Program, claim: str) -> int:
    random = np.random.default_rng(5)
    return sum(getattr(fit(program.runs(0.05, links=LOSSY, seed=random)), claim) for _ in range(60))


@pytest.mark.parametrize(
    ("program", "claim"),
    [
        (Program(messages=0, bits=0), "delay_matters"),
        (Program(messages=0, bits=0), "rate_matters"),
        (Program(messages=4300), "delay_bends"),
        (Program(bits=250e6), "rate_bends"),
    ],
)
def test_it_rarely_claims_an_effect_or_a_bend_that_is_not_there(program: Program, claim: str) -> None:
    assert false_claims(program, claim) <= 6


def test_it_reports_which_of_both_matters() -> None:
    fitted = fit(Program(messages=4300, bits=0).runs(0.02))
    assert (fitted.delay_matters, fitted.rate_matters) == (True, False)


def test_it_gives_loss_its_own_part() -> None:
    program = Program(per_loss_s=150)
    fitted = fit(program.runs(0.02, links=LOSSY, seed=8))
    assert holds(quantity(fitted.draws.elapsed(LOSSY[-2])), program.elapsed(LOSSY[-2]))


def test_a_time_that_falls_with_delay_is_no_effect_of_it() -> None:
    runs = Runs.of([Run(Link(delay, 1e9), 3 - 500 * delay) for delay in (0, 0.5e-3, 1e-3) for _ in range(3)])
    fitted = fit(runs)
    assert float(np.median(fitted.draws.messages)) == pytest.approx(0, abs=1)


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([Run(Link(0, 1e9), 1.0)] * 5, "same link"),
        ([Run(Link(delay, 1e9), 1.0) for delay in (0, 1e-3)], "too few"),
        ([], "no trials"),
    ],
)
def test_it_refuses_what_cannot_be_fitted(runs: list[Run], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit(Runs.of(runs))


@pytest.mark.parametrize(
    "run",
    [
        Run(Link(0, 1e9), 0.0),
        Run(Link(-1e-3, 1e9), 1.0),
        Run(Link(0, 0), 1.0),
        Run(Link(0, 1e9, 1.0), 1.0),
        Run(Link(0, 1e9), float("nan")),
    ],
)
def test_impossible_links_and_times_are_refused(run: Run) -> None:
    with np.errstate(divide="ignore"), pytest.raises(ValueError, match=r"must be"):
        Runs.of([run])


def test_a_mean_per_link_has_the_likelihood_of_all_its_trials() -> None:
    """Generalised least squares over all trials, which share one error per link."""
    runs = Program(hidden_delay_s=0.2e-3).runs(0.03, repetitions=4)
    parts, links = _Parts.of(runs), _Links.of(runs)
    first = _cells(parts, links, links.at.elapsed, links.counts)
    weights = _weights(parts, links, links.at.elapsed, first)
    cells = _cells(parts, links, links.at.elapsed, weights)

    shared = 1 / weights - 1 / links.counts
    places = np.array([np.flatnonzero((links.at.delay == d) & (links.at.inverse_rate == x))[0] for d, x in _at(runs)])
    covariance = np.eye(len(runs)) + shared[places][:, None] * (places[:, None] == places)
    inverse, centre = np.linalg.inv(covariance), links.at.elapsed[places]
    design = parts.design(runs, cells.bends[cells.best]) / centre[:, None]
    response = 1 + np.log(runs.elapsed / centre)
    expected = np.linalg.solve(design.T @ inverse @ design, design.T @ inverse @ response)
    residuals = response - design @ expected
    root = cells.roots[cells.best]
    assert shared.max() > 0
    assert cells.coefficients[cells.best] == pytest.approx(expected)
    assert cells.residual_sums[cells.best] == pytest.approx(residuals @ inverse @ residuals)
    assert root.T @ root == pytest.approx(design.T @ inverse @ design)


def _at(runs: Runs) -> list[tuple[float, float]]:
    return list(zip(runs.delay.tolist(), runs.inverse_rate.tolist(), strict=True))
