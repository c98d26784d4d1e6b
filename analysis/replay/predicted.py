"""What a replay says of one more trial on another network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, hypot, log
from typing import Final

import numpy as np
from scipy import special  # stdtrit is t.ppf without its checks

_TELLS: Final = 0.1
"""A smaller change drowns in the scatter of the trials."""


@dataclass(frozen=True, slots=True)
class Check:
    """A further link that was measured: seconds of the calls as replayed on it, and the geometric mean of what its trials took."""

    replayed_s: float
    measured_s: float


@dataclass(frozen=True, slots=True)
class Replayed:
    """Seconds of one trial's calls: as measured, and replayed on the link that they were measured on and on the wanted one."""

    window_s: float
    here_s: float
    there_s: float
    checks: tuple[Check, ...] = ()

    @property
    def error(self) -> float:
        """Replayed / measured - 1, on the link where both are known."""
        return self.here_s / self.window_s - 1


@dataclass(frozen=True, slots=True)
class Foretold:
    """A time with the interval that is to hold a share of single trials, in seconds; ``error``, of a change: how far it may be wrong."""

    value: float
    low: float
    high: float
    error: float


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
    one more trial, wider by the share of the change times what is known of a change's error: by the links that check, or else, where that
    is more, the error of replay on its own link and the scatter of the calibration.
    """
    here = exp(float(np.mean(np.log(trials))))
    value = _changed(replayed, here, replayed.there_s)
    squares = sum(len(own) * float(np.var(np.log(own))) for own in others)
    free = max(1, sum(len(own) - 1 for own in others))
    trial = (squares / free * (1 + 1 / len(trials))) ** 0.5
    known = hypot(log(replayed.here_s / replayed.window_s), calibration_scatter)
    error = max(known, _error_of_changes(replayed, here))
    spread = hypot(trial, _change(here, value) * error)
    reach = float(special.stdtrit(free, (1 + level) / 2)) * spread
    return Foretold(value, value * exp(-reach), value * exp(reach), error)


def _changed(replayed: Replayed, here: float, there_s: float) -> float:
    value = here + there_s - replayed.here_s
    if here < replayed.window_s / 2 or value <= 0:
        value = here * there_s / replayed.here_s
    return value


def _change(here: float, value: float) -> float:
    """The share of a time that a replay adds or takes away, and not a trial."""
    return abs(value - here) / value


def _error_of_changes(replayed: Replayed, here: float) -> float:
    """Root mean square of the errors on links that were measured, each for the whole of its change; 0 where none tells."""
    told = [(_changed(replayed, here, check.replayed_s), check.measured_s) for check in replayed.checks]
    errors = [
        log(value / measured) / _change(here, value) for value, measured in told if _change(here, value) >= _TELLS
    ]
    return float(np.sqrt(np.mean(np.square(errors)))) if errors else 0.0
