"""Head lines of network studies of programs whose needs are known by construction."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from analysis.conclusions import Answer, Deciding, Factor
from analysis.conclusions.observations.needs import fits_of, link_of, needed_of
from analysis.conclusions.sentences.network import needs
from analysis.scaling import Point
from analysis.sensitivity import Link
from tests.analysis.conclusions.designs import DELAY, RATE, asks, checked, values
from tests.analysis.sensitivity.programs import HERE, STAR, Program

NOISY = (0.75, 1.0, 1.3)


def answered(program: Program, **more: object) -> Answer:
    return checked(asks([DELAY, RATE], {(link.delay_s, link.rate_bps): program.elapsed(link) for link in STAR}, **more))


def test_it_says_both_bounds_and_what_they_come_from() -> None:
    result = answered(Program(messages=4300, bits=250e6, hidden_delay_s=0.1e-3))

    assert result.strength == "firm"
    # 3.25 s here; 10 % are 325 ms: 76 us of 4300 messages behind the 100 us, and 1.3 ns of 250 Mbit.
    assert values(result, "most one-way delay") == [pytest.approx(0.1756e-3, rel=0.02)]
    assert values(result, "least rate") == [pytest.approx(435e6, rel=0.02)]
    assert values(result, "messages in a row") == [pytest.approx(4300, rel=0.02)]
    assert values(result, "hidden delay") == [pytest.approx(0.1e-3, rel=0.1)]
    assert values(result, "sent while nothing else proceeds") == [pytest.approx(31.25e6, rel=0.02)]
    assert values(result, "most one-way delay, with the least rate") == [pytest.approx(0.138e-3, rel=0.02)]
    assert values(result, "least rate, with the most one-way delay") == [pytest.approx(606e6, rel=0.02)]
    assert re.fullmatch(
        r"Elapsed time stays within 10 % of 3.25 s \(current link\) if one-way delay is below 13\d µs \(.* µs\) "
        r"and the rate is above 60\d Mbit/s "
        r"\(.* Mbit/s\)\. 4 300 messages \(95 % CI 4 [12].0 to 4 3.0\) and 31.\d MB \(3.* to 3.* MB\) are on its critical path\.",
        result.sentence,
    )


def test_the_bounds_name_a_time_without_drift() -> None:
    program = Program(messages=4300, bits=250e6)
    question = asks([DELAY, RATE], {(link.delay_s, link.rate_bps): program.elapsed(link) for link in STAR})
    needed = needed_of(question, question.measured())
    assert needed is not None
    assert "(current link, without drift)" in needs(replace(question, is_without_drift=True), needed)[0]


def test_both_bounds_together_keep_the_program_within_a_tenth() -> None:
    program = Program(messages=4300, bits=250e6, hidden_delay_s=0.1e-3)
    result = answered(program)
    (delay,) = values(result, "most one-way delay, with the least rate")
    (rate,) = values(result, "least rate, with the most one-way delay")

    assert program.elapsed(Link(delay, rate)) == pytest.approx(1.1 * program.elapsed(HERE), rel=0.005)
    (alone,) = values(result, "most one-way delay")
    assert program.elapsed(Link(alone, rate)) > 1.13 * program.elapsed(HERE)


def test_no_interval_is_shown_of_one_degree_of_freedom() -> None:
    links = [*STAR[:4], STAR[5], STAR[6]]
    program = Program(messages=4300, bits=250e6)
    typical = {(link.delay_s, link.rate_bps): program.elapsed(link) for link in links}
    result = checked(asks([DELAY, RATE], typical, repetitions=(1.0,)))

    (messages,) = [figure for figure in result.figures if figure.name == "messages in a row"]
    assert (messages.low, messages.high) == (None, None)
    assert "4 300 messages (not enough data for an interval)" in result.sentence
    assert result.missing is not None
    assert result.missing.points


def test_what_makes_no_difference_is_reported_with_how_little() -> None:
    result = answered(Program(messages=4300, bits=0))

    assert values(result, "least rate") == []
    assert "a rate down to 100 Mbit/s changes the time by less than" in result.sentence


def test_what_too_much_scatter_hides_is_not_called_no_difference() -> None:
    result = answered(Program(messages=200, bits=1e9), repetitions=NOISY)

    assert values(result, "most one-way delay") == []
    assert "delay up to 1 ms takes at most" in result.sentence.lower()


def test_every_level_of_another_factor_gets_its_own_needs() -> None:
    steps = Factor("steps", "steps", "load", "", "steps")
    programs = {100: Program(messages=4300), 10: Program(computing_s=0.3, messages=430, bits=10e6)}
    typical = {
        (count, link.delay_s, link.rate_bps): program.elapsed(link)
        for count, program in programs.items()
        for link in STAR
    }
    result = checked(asks([steps, DELAY, RATE], typical))

    assert values(result, "messages in a row", steps=100) == [pytest.approx(4300, rel=0.05)]
    assert values(result, "messages in a row", steps=10) == [pytest.approx(430, rel=0.05)]


def test_three_delays_are_reported_as_factors_between_them() -> None:
    result = checked(asks([DELAY], {0.0: 1.0, 0.004: 1.5, 0.016: 3.0}))

    assert values(result, "most one-way delay") == []
    assert "each ms of delay adds" in result.sentence.lower()


def test_printed_values_get_no_model() -> None:
    result = answered(Program(), published=True, repetitions=(1.0,))

    assert values(result, "messages in a row") == []


def test_links_are_taken_as_they_were_measured() -> None:
    point = Point({"link.delay": 0.0, "link.bandwidth": 5e8, "link.loss": 0.01}, {})
    assert link_of(point) is not None

    measured = link_of(replace(point, link={"link.delay": 31e-6, "link.bandwidth": 4.99e8, "link.loss": 0.02}))

    assert measured is not None
    assert (measured.delay_s, measured.rate_bps, measured.loss) == (31e-6, 4.99e8, 0.01)
    assert link_of(Point({"link.delay": 0.0, "link.bandwidth": None}, {})) is None


def test_the_link_here_has_the_least_delay_though_certified_rates_scatter() -> None:
    certified = {link: replace(link, rate_bps=link.rate_bps * (1 + link.delay_s)) for link in STAR}
    program = Program(messages=4300, bits=250e6)
    question = asks([DELAY, RATE], {(link.delay_s, link.rate_bps): program.elapsed(link) for link in STAR})
    points = [
        replace(point, link={"link.delay": link.delay_s, "link.bandwidth": certified[link].rate_bps})
        for point, link in zip(question.points, STAR, strict=True)
    ]

    (fitted,) = fits_of(replace(question, points=points))

    assert fitted.here.delay_s == STAR[0].delay_s, "the link with 1 ms has the highest certified rate"


def test_every_combination_of_the_other_factors_has_a_model_of_its_own() -> None:
    hosts = Factor("hosts", "hosts", "scale", "", "hosts")
    program = Program(messages=4300, bits=250e6)
    typical = {(link.delay_s, link.rate_bps, n): n * program.elapsed(link) for link in STAR for n in (2, 4)}
    fits = fits_of(asks([DELAY, RATE, hosts], typical))
    assert [(fit.at, fit.where, fit.here) for fit in fits] == [
        ("2 hosts", {"hosts": 2}, STAR[0]),
        ("4 hosts", {"hosts": 4}, STAR[0]),
    ]


def test_a_program_that_prints_milliseconds_has_the_same_needs() -> None:
    program = Program(messages=4300, bits=250e6)
    printed = Deciding("mine.time", "Time", "ms")
    of_links = {(link.delay_s, link.rate_bps): 1e3 * program.elapsed(link) for link in STAR}

    in_seconds, in_ms = answered(program), checked(asks([DELAY, RATE], of_links, deciding=printed))

    for name in ("most one-way delay", "least rate"):
        assert values(in_ms, name) == [pytest.approx(values(in_seconds, name)[0])]
    assert fits_of(asks([DELAY, RATE], of_links, deciding=replace(printed, unit="frames"))) == []
