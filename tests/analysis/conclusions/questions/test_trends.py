"""Latency and bandwidth of messages, and growth with the problem."""

from __future__ import annotations

import json

import pytest

from analysis.conclusions import Deciding
from tests.analysis.conclusions.designs import BYTES, MOLECULES, asks, checked, values

SIZES = [64 * 8**k for k in range(6)]
LINE = {n: 1e-4 + n / 1e8 for n in SIZES}


def test_it_reads_latency_and_bandwidth_from_the_line():
    result = checked(asks([BYTES], LINE))

    assert result.strength == "firm"
    assert values(result, "latency") == [pytest.approx(1e-4, rel=0.02)]
    assert values(result, "bandwidth") == [pytest.approx(1e8, rel=0.02)]
    assert values(result, "half-bandwidth size") == [pytest.approx(1e4, rel=0.03)]


@pytest.mark.parametrize(("unit", "bits"), [("B/s", 1), ("bit/s", 8)])
def test_a_measured_rate_is_turned_into_times(unit, bits):
    rate = Deciding("rate", "Rate", unit, higher_is_better=True)

    result = checked(asks([BYTES], {n: bits * n / t for n, t in LINE.items()}, deciding=rate))

    assert values(result, "bandwidth") == [pytest.approx(1e8, rel=0.02)]


def test_times_that_do_not_grow_give_no_bandwidth():
    result = checked(asks([BYTES], dict.fromkeys(SIZES, 1e-4)))

    assert result.strength == "open"
    assert result.figures == ()


def test_a_line_that_misses_the_points_is_only_moderate():
    result = checked(asks([BYTES], {n: t * (1.5 if n > 3000 else 1) for n, t in LINE.items()}))

    assert result.strength == "moderate"
    assert "deviate from that line" in result.sentence


def test_two_sizes_are_too_few_for_a_line():
    assert checked(asks([BYTES], {64: 1.0, 128: 2.0})).strength == "open"


def test_printed_times_give_a_line():
    assert checked(asks([BYTES], LINE, repetitions=[1.0], published=True)).strength == "printed"


def test_answers_are_json():
    for typical in (LINE, dict.fromkeys(SIZES, 1.0)):
        json.dumps(checked(asks([BYTES], typical)).to_dict(), allow_nan=False)


def test_it_finds_the_power_of_growth():
    result = checked(asks([MOLECULES], {100: 1.0, 200: 4.0, 400: 16.0}))

    assert result.strength == "firm"
    assert values(result, "exponent") == [pytest.approx(2.0)]


def test_two_sizes_have_no_power():
    result = checked(asks([MOLECULES], {100: 1.0, 400: 4.0}))

    assert values(result, "exponent") == []
    assert values(result, "growth") == [pytest.approx(4.0, rel=0.02)]
    assert "the power" not in result.sentence


def test_a_size_of_zero_has_no_power():
    assert values(checked(asks([MOLECULES], {0: 1.0, 100: 2.0, 200: 2 * 2**0.5, 400: 4.0})), "exponent") == [
        pytest.approx(0.5)
    ]


def test_no_growth_is_open():
    assert checked(asks([MOLECULES], {100: 1.0, 400: 1.001})).strength == "open"
