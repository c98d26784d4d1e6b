"""Proposed links."""

from __future__ import annotations

import pytest

from analysis.sensitivity import EarlierTrial, Link, Range, fit, propose
from tests.analysis.sensitivity.programs import Program

HERE = Link(0.0, 1e9)


def test_it_proposes_ten_links_that_begin_here_and_end_in_a_corner() -> None:
    links = propose(HERE)
    assert links[0] == HERE
    assert links[-1] == Link(1e-3, 1e8)
    assert len(links) == len(set(links)) == 10


@pytest.mark.parametrize("messages", [300.0, 40_000.0])
def test_the_delays_reach_to_where_the_program_takes_about_twice_as_long(messages: float) -> None:
    program = Program(messages=messages, bits=0)
    links = propose(HERE, Range.around(HERE, EarlierTrial(elapsed_s=3.0, messages=messages)))
    longest = max(program.elapsed(link) for link in links)
    assert longest == pytest.approx(6.0, rel=0.1)


def test_loss_is_asked_for_where_recoveries_are_quick_and_where_they_are_slow() -> None:
    lossy = [link for link in propose(HERE, losses=(0.01,)) if link.loss]
    assert [link.delay_s for link in lossy] == [0.0, 1e-3]


def test_two_trials_on_each_proposed_link_report_slopes_and_bends() -> None:
    program = Program(messages=3000, bits=300e6, hidden_delay_s=0.3e-3)
    fitted = fit(program.runs(0.02, links=propose(HERE, Range.around(HERE, EarlierTrial(3.0, 3000, 300e6)))))
    assert (fitted.delay_matters, fitted.rate_matters, fitted.delay_bends) == (True, True, True)


@pytest.mark.parametrize("to", [Range(0.0, 1e8), Range(1e-3, 1e9)])
def test_a_range_that_does_not_leave_the_link_here_is_refused(to: Range) -> None:
    with pytest.raises(ValueError, match="more delay and to a lower rate"):
        propose(HERE, to)
