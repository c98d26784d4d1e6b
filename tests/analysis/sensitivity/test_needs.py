"""Bounds, gains and predictions of the model, against known programs."""

from __future__ import annotations

import numpy as np
import pytest

from analysis.sensitivity import Link, fit, gain, needs, predict, relative_times
from tests.analysis.sensitivity.programs import GIGABIT, HERE, Program

PROGRAM = Program(messages=4300, bits=250e6)


def test_the_bounds_are_where_the_program_takes_a_tenth_longer() -> None:
    output = needs(fit(PROGRAM.runs(0.005)), HERE)
    allowed = 1.1 * PROGRAM.elapsed(HERE)
    assert output.most_delay is not None
    assert output.least_rate is not None
    assert PROGRAM.elapsed(Link(output.most_delay.value, GIGABIT)) == pytest.approx(allowed, rel=0.01)
    assert PROGRAM.elapsed(Link(HERE.delay_s, output.least_rate.value)) == pytest.approx(allowed, rel=0.01)
    low, high = output.least_rate.interval.low, output.least_rate.interval.high
    assert low is not None
    assert high is not None
    assert low < output.least_rate.value < high


def test_what_has_no_effect_needs_nothing() -> None:
    output = needs(fit(Program(messages=4300, bits=0).runs(0.02)), HERE)
    assert output.least_rate is None
    assert output.most_delay is not None


def test_a_gain_says_how_much_faster_and_whether_that_was_measured() -> None:
    fitted = fit(PROGRAM.runs(0.005))
    inside, beyond = (gain(fitted, Link(1e-3, GIGABIT), link) for link in (Link(0.5e-3, GIGABIT), Link(0.5e-3, 1e10)))
    truth = PROGRAM.elapsed(Link(1e-3, GIGABIT)) / PROGRAM.elapsed(Link(0.5e-3, GIGABIT))
    assert inside.speedup.value == pytest.approx(truth, rel=0.01)
    assert (inside.measured, beyond.measured) == (True, False)
    assert beyond.elapsed.value <= inside.elapsed.value


def test_predictions_hold_trials_on_links_that_were_left_out() -> None:
    random = np.random.default_rng(4)
    left_out = Link(0.35e-3, 150e6)
    held = []
    for _ in range(60):
        predicted = predict(fit(PROGRAM.runs(0.05, seed=random)), left_out)
        trial = PROGRAM.elapsed(left_out) * float(np.exp(0.05 * random.standard_normal()))
        interval = predicted.elapsed.interval
        held.append((interval.low or 0) <= trial <= (interval.high or np.inf))
    assert 0.8 <= np.mean(held) <= 0.98


def test_the_map_grows_with_delay_and_with_a_slower_link() -> None:
    times = relative_times(fit(PROGRAM.runs(0.005)), HERE, [0, 0.5e-3, 1e-3], [1e9, 1e8])
    assert times.shape == (2, 3)
    assert (np.diff(times, axis=1) > 0).all()
    assert (times[1] > times[0]).all()


def test_some_of_the_draws_stand_for_all() -> None:
    fitted = fit(Program().runs(0.03))
    fewer = fitted.draws.first(400)
    assert len(fewer) == 400
    assert np.median(fewer.trial(HERE)) == pytest.approx(np.median(fitted.draws.trial(HERE)), rel=0.01)
    assert fewer.trial(HERE) == pytest.approx(fewer.elapsed(HERE) * fewer.of_a_trial)
