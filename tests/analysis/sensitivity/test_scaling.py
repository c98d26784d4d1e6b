"""Best sizes on a link, for programs of known times by size."""

from __future__ import annotations

import pytest

from analysis.sensitivity import Fit, Link, best_size_on, fit
from tests.analysis.sensitivity.programs import HERE, STAR, Program

SIZES = (1, 2, 4, 8)
SLOW = Link(1e-3, 1e9)


@pytest.fixture(scope="module")
def fits() -> list[Fit]:
    """Fit 8 s of work divided among the hosts, and messages that grow with them."""
    programs = [Program(computing_s=8 / n, messages=400.0 * (n - 1), bits=20e6 * (n - 1)) for n in SIZES]
    return [fit(program.runs(0.02, links=STAR, seed=n)) for n, program in zip(SIZES, programs, strict=True)]


def test_it_stops_earlier_on_a_slower_network(fits: list[Fit]) -> None:
    here, slow = best_size_on(fits, HERE), best_size_on(fits, SLOW)

    assert (SIZES[here.best], SIZES[slow.best]) == (8, 4)
    assert here.share > 0.99
    # 2 s of computing and 1200 messages of a millisecond, 60 Mbit at 1 Gbit/s.
    assert slow.elapsed[2].value == pytest.approx(2 + 1.2 + 0.06, rel=0.03)
    interval = slow.elapsed[2].interval
    assert interval.low is not None
    assert interval.high is not None
    assert interval.low < 3.26 < interval.high


def test_two_sizes_that_take_equal_are_not_distinguished() -> None:
    alike = [fit(Program(computing_s=3.0, messages=1000).runs(0.03, seed=seed)) for seed in (1, 2)]
    assert best_size_on(alike, HERE).share < 0.99


def test_a_link_beyond_those_that_were_measured_is_extended(fits: list[Fit]) -> None:
    assert best_size_on(fits, SLOW).measured
    assert not best_size_on(fits, Link(10e-3, 1e9)).measured


def test_one_size_does_not_scale(fits: list[Fit]) -> None:
    with pytest.raises(ValueError, match="two sizes"):
        best_size_on(fits[:1], HERE)
