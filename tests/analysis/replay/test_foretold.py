"""A replay changes what was measured by what it says, with an interval from repetitions, its own error and the calibration."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from analysis.replay.predicted import Check, Replayed, foretell

REPEATED = [[2.0, 2.04], [3.0, 3.1], [4.0, 3.9]]


def test_a_time_of_the_window_changes_by_as_many_seconds_and_that_of_a_message_by_as_large_a_part():
    replayed = Replayed(window_s=1.9, here_s=1.9, there_s=2.5)
    assert foretell(replayed, [2.0, 2.0], REPEATED, 0.0).value == pytest.approx(2.6)
    assert foretell(replayed, [1e-3], REPEATED, 0.0).value == pytest.approx(1e-3 * 2.5 / 1.9)


def test_without_a_change_its_interval_is_that_of_one_more_repetition():
    replayed = Replayed(window_s=1.9, here_s=1.5, there_s=1.5)
    told = foretell(replayed, [2.0, 2.0], REPEATED, 0.3)
    scatter = math.sqrt(sum(float(np.var(np.log(own))) * 2 for own in REPEATED) / 3)
    reach = stats.t.ppf(0.95, 3) * scatter * math.sqrt(1.5)
    assert (told.value, math.log(told.high / told.value)) == (pytest.approx(2.0), pytest.approx(reach))
    assert math.log(told.value / told.low) == pytest.approx(reach)


def test_a_change_is_as_uncertain_as_replay_and_calibration_were_where_the_truth_is_known():
    exact = foretell(Replayed(2.0, 2.0, 6.0), [2.0], REPEATED, 0.0)
    wrong = foretell(Replayed(2.0, 2.4, 6.4), [2.0], REPEATED, 0.0)
    loose = foretell(Replayed(2.0, 2.0, 6.0), [2.0], REPEATED, 0.2)
    assert exact.value == pytest.approx(wrong.value)
    assert wrong.high > exact.high * 1.05
    assert loose.high > exact.high * 1.05


def test_links_that_were_measured_tell_how_far_a_change_may_be_wrong():
    """On one of them 6.6 s were foretold of 6 s, on the other as much as was measured; a third changes too little to tell."""
    replayed = Replayed(2.0, 2.0, 4.0, (Check(6.6, 6.0), Check(5.0, 5.0), Check(2.1, 9.0)))
    told, believed = foretell(replayed, [2.0], REPEATED, 0.0), foretell(Replayed(2.0, 2.0, 4.0), [2.0], REPEATED, 0.0)
    assert told.error == pytest.approx(math.log(6.6 / 6.0) / (4.6 / 6.6) / math.sqrt(2))
    assert (told.value, believed.error) == (believed.value, 0.0)
    free = 3
    trial = math.log(believed.high / believed.value) / stats.t.ppf(0.95, free)
    reach = stats.t.ppf(0.95, free) * math.hypot(trial, told.error / 2)
    assert math.log(told.high / told.value) == pytest.approx(reach)
