"""What a replay says of one more trial on another network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, hypot, log

import numpy as np
from scipy import stats


@dataclass(frozen=True, slots=True)
class Replayed:
    """Seconds of one trial's calls: as measured, and replayed on the link that they were measured on and on the wanted one."""

    window_s: float
    here_s: float
    there_s: float

    @property
    def error(self) -> float:
        """Replayed / measured - 1, on the link where both are known."""
        return self.here_s / self.window_s - 1


@dataclass(frozen=True, slots=True)
class Foretold:
    """A time with the interval that is to hold a share of single trials, in seconds."""

    value: float
    low: float
    high: float


def foretell(
    replayed: Replayed,
    trials: Sequence[float],
    others: Sequence[Sequence[float]],
    calibration_scatter: float,
    level: float = 0.9,
) -> Foretold:
    """Return what a trial takes: the geometric mean of ``trials``, those on the link of the trace, and what the replay changes of it.

    A time of at least half of the window changes by as many seconds as the replay, a shorter one (of one message, of one step) by as
    large a part. ``others``: times on each link that was measured, of which the scatter of repetitions is pooled; the interval is that of
    one more trial, wider by the share of the change times the error of replay on its own link and the scatter of the calibration.
    """
    here = exp(float(np.mean(np.log(trials))))
    value = here + replayed.there_s - replayed.here_s
    if here < replayed.window_s / 2 or value <= 0:
        value = here * replayed.there_s / replayed.here_s
    squares = sum(len(own) * float(np.var(np.log(own))) for own in others)
    free = max(1, sum(len(own) - 1 for own in others))
    trial = (squares / free * (1 + 1 / len(trials))) ** 0.5
    change = abs(value - here) / value
    spread = hypot(trial, change * hypot(log(replayed.here_s / replayed.window_s), calibration_scatter))
    reach = float(stats.t.ppf((1 + level) / 2, free)) * spread
    return Foretold(value, value * exp(-reach), value * exp(reach))
