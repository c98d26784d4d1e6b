"""Answers of network sweeps."""

from __future__ import annotations

import pytest

from analysis.conclusions import answer, key_figures
from analysis.scaling import Point
from tests.analysis.conclusions.designs import BYTES, DELAY, GFLOPS, LOSS, RATE, asks, checked, values

GRID = {(0.0, 0.0): 1.0, (0.016, 0.0): 3.0, (0.0, 0.01): 1.5, (0.016, 0.01): 4.5}


def test_it_reports_each_factor_alone_and_which_matters_most():
    result = checked(asks([DELAY, LOSS], GRID))

    assert result.strength == "firm"
    assert values(result, "factor of delay") == [pytest.approx(3.0)]
    assert values(result, "factor of loss") == [pytest.approx(1.5)]
    assert values(result, "matters most") == ["link.delay"]
    assert values(result, "seconds per second of delay", **{"link.loss": 0.0}) == [pytest.approx(125.0, rel=1e-3)]


def test_loss_that_matters_only_with_delay_is_reported_there():
    result = checked(asks([DELAY, LOSS], {**GRID, (0.0, 0.01): 1.005}))

    assert values(result, "matters") == ["link.delay", "link.loss"]
    assert values(result, "factor of loss, others harshest") == [pytest.approx(1.5)]
    assert "1 % loss 1.5 times" in result.sentence
    assert " at 16 ms delay" in result.sentence
    assert any("1.5 times" in c.statement and "at 16 ms delay" in c.statement for c in result.causes)


def test_an_interval_over_a_factor_of_ten_is_not_shown_and_more_trials_are_recommended():
    question = asks([DELAY], {0.0: 1.0, 0.016: 1e6}, repetitions=(0.5, 1.5))
    result = checked(question)

    assert values(result, "matters") == ["link.delay"]
    assert "over 1 000 times (not enough data for an interval) as long" in result.sentence
    assert result.missing is not None
    assert dict(key_figures(result, question.factors))["Worst against best delay"].startswith("at least")


def test_it_does_not_rank_factors_that_cannot_be_distinguished():
    result = checked(asks([DELAY, LOSS], {**GRID, (0.0, 0.01): 2.98}))

    assert values(result, "matters") == ["link.delay", "link.loss"]
    assert values(result, "matters most") == []
    assert result.sentence.startswith("Delay and loss matter.")


def test_shares_of_causes_add_up_to_the_whole():
    result = checked(asks([DELAY, LOSS], GRID))

    assert sum(c.explains for c in result.causes if c.explains is not None) == pytest.approx(1.0)


def test_it_compares_the_cost_of_delay_with_and_without_loss_at_one_rate():
    times = {(d, loss, r): t * 1e7 / r for (d, loss), t in GRID.items() for r in (1e6, 1e7)}

    result = checked(asks([DELAY, LOSS, RATE], times))

    output = [c.statement for c in result.causes if "ms of delay adds" in c.statement]
    assert len(output) == 1
    costs = [float(words.split()[0]) for words in output[0].split("adds ")[1].split(" and ")]
    assert costs[1] / costs[0] == pytest.approx(1.5, rel=5e-3)


def test_a_delay_that_helps_is_no_negative_cost():
    result = checked(asks([DELAY], {0.0: 2.0, 0.001: 1.0, 0.016: 1.5}))

    assert "round trip" not in result.sentence


def test_the_interval_of_a_slope_stays_on_the_side_of_its_effect():
    result = checked(asks([DELAY], {0.0: 1.0, 0.016: 1.9}, repetitions=[0.9, 1.0, 1.1]))
    slope = result.figure("seconds per second of delay")

    assert values(result, "matters") == ["link.delay"]
    assert slope is not None
    assert slope.low is not None
    assert slope.low > 0


def test_every_message_size_has_its_own_needs():
    times = {(0.0, 65536): 0.01, (0.016, 65536): 0.05, (0.0, 4 << 20): 0.5, (0.016, 4 << 20): 0.505}

    result = checked(asks([DELAY, BYTES], times))

    assert values(result, "matters", message_bytes=65536) == ["link.delay"]
    assert values(result, "matters", message_bytes=4 << 20) == []
    assert "64 KiB" in result.sentence


def test_many_message_sizes_are_not_all_reported_in_the_head_line():
    times = {(d, 1 << k): (1 + 100 * d) * 2**k for d in (0.0, 0.01) for k in range(10, 18)}

    result = checked(asks([DELAY, BYTES], times))

    assert len(values(result, "matters")) == 8
    assert result.sentence.startswith("In all 8 combinations delay matters.")


def test_a_rate_falls_with_delay():
    result = checked(asks([DELAY], {0.0: 100.0, 0.016: 25.0}, deciding=GFLOPS))

    assert values(result, "factor of delay") == [pytest.approx(4.0)]
    assert "25 %" in result.sentence


def test_no_effect_is_bounded():
    result = checked(asks([DELAY, LOSS], dict.fromkeys(GRID, 1.0)))

    assert result.strength == "firm"
    assert values(result, "matters") == []
    assert 0 < values(result, "largest difference")[0] < 0.1


def test_printed_values_are_claimed_as_printed():
    result = checked(asks([DELAY, LOSS], GRID, repetitions=[1.0], published=True))

    assert result.strength == "printed"
    assert values(result, "matters") == ["link.delay", "link.loss"]


@pytest.mark.parametrize("repetitions", [[], [1.0]])
def test_one_setting_reports_nothing(repetitions):
    assert checked(asks([DELAY], {0.0: 1.0}, repetitions=repetitions)).strength == "open"


def test_a_grid_of_single_values_is_judged_by_the_effects_that_are_too_small_to_matter():
    times = {
        (d, loss): (1 + 200 * d) * (1 + 30 * loss) * (1.01 if d == 0.004 else 1)
        for d in (0.0, 0.004, 0.016)
        for loss in (0.0, 0.01)
    }
    times[0.004, 0.01] *= 0.99

    result = checked(asks([DELAY, LOSS], times, repetitions=[1.0]))

    assert result.strength == "moderate"
    assert values(result, "matters")[0] == "link.delay"


def test_delays_of_a_link_without_a_rate_are_reported_without_a_model():
    result = checked(asks([DELAY], {0.0: 1.0, 0.001: 1.5, 0.002: 2.0, 0.004: 3.0, 0.008: 5.0}))

    assert values(result, "seconds per second of delay") == [pytest.approx(500.0, rel=1e-3)]


def test_it_finds_its_points_in_a_large_design(monkeypatch):
    """Comparison of each pair of ten thousand points would take minutes."""
    compared = []
    monkeypatch.setattr(Point, "__eq__", lambda self, other: compared.append(1) or self is other)
    grid = {
        (ms / 1e3, loss / 1e3, 1024.0 * size): 1.0 + ms for ms in range(5) for loss in range(5) for size in range(1, 41)
    }
    result = answer(asks([DELAY, LOSS, BYTES], grid))

    assert len(values(result, "factor of delay")) == 40
    assert len(compared) < 1000
