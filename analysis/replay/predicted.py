"""Prediction of a trial on another network from its replay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, hypot, log
from typing import Final

import numpy as np
import scipy  # special is loaded when first used; stdtrit is t.ppf without its checks

_LEAST_CHANGE: Final = 0.1
"""Smaller changes are not measurable in the scatter of the trials."""


@dataclass(frozen=True, slots=True)
class Check:
    """Another measured link: replayed seconds, and its trials' geometric mean."""

    replayed_s: float
    measured_s: float


@dataclass(frozen=True, slots=True)
class Replayed:
    """Seconds of one trial's calls: measured, and replayed on this or another link."""

    window_s: float
    here_s: float
    there_s: float
    checks: tuple[Check, ...] = ()

    @property
    def error(self) -> float:
        """Replayed / measured - 1, on the link of the trace."""
        return self.here_s / self.window_s - 1


@dataclass(frozen=True, slots=True)
class PredictedTime:
    """A time with a prediction interval for single trials, s; error of a change."""

    value: float
    low: float
    high: float
    error: float


def make_prediction(
    replayed: Replayed,
    trials: Sequence[float],
    others: Sequence[Sequence[float]],
    calibration_scatter: float,
    level: float = 0.9,
) -> PredictedTime:
    """Predict a trial: the geometric mean of ``trials`` and the replayed change.

    A time of at least half of the window changes by the seconds of the replay, a shorter one (of a message, of a step) by its ratio.
    ``others``: times on each measured link, for the pooled scatter of repetitions. The interval is that of one more trial, widened by
    the share of the change times its error: the larger of that on the checked links, and of the replay's error on its own link together
    with the scatter of the calibration.
    """
    here = exp(float(np.mean(np.log(trials))))
    value = _changed(replayed, here, replayed.there_s)
    squares = sum(len(times) * float(np.var(np.log(times))) for times in others)
    free = max(1, sum(len(times) - 1 for times in others))
    trial = (squares / free * (1 + 1 / len(trials))) ** 0.5
    error_here = hypot(log(replayed.here_s / replayed.window_s), calibration_scatter)
    error = max(error_here, _error_of_changes(replayed, here))
    spread = hypot(trial, _change(here, value) * error)
    reach = float(scipy.special.stdtrit(free, (1 + level) / 2)) * spread
    return PredictedTime(value, value * exp(-reach), value * exp(reach), error)


def _changed(replayed: Replayed, here: float, there_s: float) -> float:
    value = here + there_s - replayed.here_s
    if here < replayed.window_s / 2 or value <= 0:
        value = here * there_s / replayed.here_s
    return value


def _change(here: float, value: float) -> float:
    return abs(value - here) / value


def _error_of_changes(replayed: Replayed, here: float) -> float:
    """Return the RMS error of changes on checked links; 0 without large changes."""
    predictions = [(_changed(replayed, here, check.replayed_s), check.measured_s) for check in replayed.checks]
    errors = [
        log(value / measured) / _change(here, value)
        for value, measured in predictions
        if _change(here, value) >= _LEAST_CHANGE
    ]
    return float(np.sqrt(np.mean(np.square(errors)))) if errors else 0.0
