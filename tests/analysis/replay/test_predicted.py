"""Predictions add the replayed change, with an interval."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from analysis.replay.predicted import Check, Replayed, make_prediction

REPEATED = [[2.0, 2.04], [3.0, 3.1], [4.0, 3.9]]


def test_long_times_change_by_seconds_and_short_ones_by_ratio():
    replayed = Replayed(window_s=1.9, here_s=1.9, there_s=2.5)
    assert make_prediction(replayed, [2.0, 2.0], REPEATED, 0.0).value == pytest.approx(2.6)
    assert make_prediction(replayed, [1e-3], REPEATED, 0.0).value == pytest.approx(1e-3 * 2.5 / 1.9)


def test_without_a_change_its_interval_is_that_of_one_more_repetition():
    replayed = Replayed(window_s=1.9, here_s=1.5, there_s=1.5)
    predicted = make_prediction(replayed, [2.0, 2.0], REPEATED, 0.3)
    scatter = math.sqrt(sum(float(np.var(np.log(own))) * 2 for own in REPEATED) / 3)
    reach = stats.t.ppf(0.95, 3) * scatter * math.sqrt(1.5)
    assert (predicted.value, math.log(predicted.high / predicted.value)) == (pytest.approx(2.0), pytest.approx(reach))
    assert math.log(predicted.value / predicted.low) == pytest.approx(reach)


def test_a_change_is_as_uncertain_as_replay_and_calibration_were_where_the_truth_is_known():
    exact = make_prediction(Replayed(2.0, 2.0, 6.0), [2.0], REPEATED, 0.0)
    wrong = make_prediction(Replayed(2.0, 2.4, 6.4), [2.0], REPEATED, 0.0)
    loose = make_prediction(Replayed(2.0, 2.0, 6.0), [2.0], REPEATED, 0.2)
    assert exact.value == pytest.approx(wrong.value)
    assert wrong.high > exact.high * 1.05
    assert loose.high > exact.high * 1.05


def test_checked_links_determine_the_error_of_a_change():
    """One prediction is 6.6 s of 6 s, one exact; a third change is too small."""
    replayed = Replayed(2.0, 2.0, 4.0, (Check(6.6, 6.0), Check(5.0, 5.0), Check(2.1, 9.0)))
    predicted, unchecked = (
        make_prediction(replayed, [2.0], REPEATED, 0.0),
        make_prediction(Replayed(2.0, 2.0, 4.0), [2.0], REPEATED, 0.0),
    )
    assert predicted.error == pytest.approx(math.log(6.6 / 6.0) / (4.6 / 6.6) / math.sqrt(2))
    assert (predicted.value, unchecked.error) == (unchecked.value, 0.0)
    free = 3
    trial = math.log(unchecked.high / unchecked.value) / stats.t.ppf(0.95, free)
    reach = stats.t.ppf(0.95, free) * math.hypot(trial, predicted.error / 2)
    assert math.log(predicted.high / predicted.value) == pytest.approx(reach)
