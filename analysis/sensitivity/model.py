"""Elapsed time of one program at one size as a function of the link it runs over.

    T(d, B, loss) = T0 + m max(0, d - d0) + V max(0, 1/B - x0) + loss (a + b d)

m is the number of one-way messages that wait for each other, V the bits that are sent while nothing else proceeds; d0 and x0 are
the delay and the inverse rate that the program hides behind its own work. Recoveries of lost packets cost time-outs (a) and round
trips (b).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final

import numpy as np
import numpy.typing as npt

from analysis.statistics import Interval
from analysis.statistics.summary import Floats

LEVEL: Final = 0.95
DELAY_ERROR_S: Final = 5e-6
RATE_ERROR: Final = 2e-3
"""Standard deviations of a certificate's one-way delay in seconds, and of its rate as a share."""


@dataclass(frozen=True, slots=True)
class Link:
    """A network between two hosts, with certified values if the link was measured."""

    delay_s: float
    """One way."""
    rate_bps: float
    loss: float = 0.0
    """Share of packets, 0 to 1."""

    @property
    def inverse_rate(self) -> float:
        """Return seconds per bit."""
        return 1 / self.rate_bps


@dataclass(frozen=True, slots=True)
class Run:
    """One trial of a program on one link."""

    link: Link
    elapsed_s: float


@dataclass(frozen=True, slots=True)
class Runs:
    """Trials as columns, shape (n,) each."""

    delay: Floats
    """Seconds, one way."""
    inverse_rate: Floats
    """Seconds per bit: the axis on which a volume is a slope."""
    loss: Floats
    elapsed: Floats
    """Seconds, all positive."""

    @classmethod
    def of(cls, runs: Sequence[Run]) -> Runs:
        """Return the columns; ValueError for values out of range.

        Times and rates are positive, delays not negative, loss is from 0 to below 1.
        """
        columns = [
            np.array(values, dtype=np.float64)
            for values in (
                [r.link.delay_s for r in runs],
                [r.link.rate_bps for r in runs],
                [r.link.loss for r in runs],
                [r.elapsed_s for r in runs],
            )
        ]
        delay, rate, loss, elapsed = columns
        if not all(np.isfinite(column).all() for column in columns):
            raise ValueError("links and times must be finite numbers")
        if len(runs) and ((elapsed <= 0).any() or (rate <= 0).any() or (delay < 0).any()):
            raise ValueError("times and rates must be positive, delays not negative")
        if ((loss < 0) | (loss >= 1)).any():
            raise ValueError("loss must be at least 0 and below 1")
        return cls(delay, 1 / rate, loss, elapsed)

    def __len__(self) -> int:
        return len(self.elapsed)


@dataclass(frozen=True, slots=True)
class Draws:
    """The model as equally plausible parameter sets, shape (draws,) each."""

    base: Floats
    """T0, seconds."""
    messages: Floats
    hidden_delay: Floats
    """d0, seconds one way."""
    bits: Floats
    hidden_inverse_rate: Floats
    """x0, seconds per bit."""
    loss_timeouts: Floats
    """a, seconds per unit of loss."""
    loss_round_trips: Floats
    """b, seconds per unit of loss and second of delay."""
    scatter: Floats
    """Standard deviation of the logarithm of one trial about the model."""

    def __len__(self) -> int:
        return len(self.base)

    def elapsed(self, link: Link) -> Floats:
        """Return seconds on ``link`` by every draw, shape (draws,)."""
        return np.asarray(
            self.base
            + self.messages * np.maximum(0, link.delay_s - self.hidden_delay)
            + self.bits * np.maximum(0, link.inverse_rate - self.hidden_inverse_rate)
            + link.loss * (self.loss_timeouts + self.loss_round_trips * link.delay_s)
        )

    def trial(self, link: Link) -> Floats:
        """Return seconds of one more trial on ``link`` by every draw, shape (draws,)."""
        return np.asarray(self.elapsed(link) * self.of_a_trial)

    @property
    def of_a_trial(self) -> Floats:
        """Return one trial / the model's value for every draw, shape (draws,)."""
        deviation = np.random.default_rng(len(self)).standard_normal(len(self))
        return np.asarray(np.exp(self.scatter * deviation))

    def first(self, count: int) -> Draws:
        """Return so many of the independent draws."""
        return Draws(*(getattr(self, field.name)[:count] for field in fields(self)))


CARRIED: Final = 400
"""Parameter sets that a page carries; all views use as many."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with the interval that the data leave to it; unbounded ends are None."""

    value: float
    interval: Interval


def quantity(values: npt.ArrayLike, *, level: float = LEVEL) -> Quantity:
    """Return median and central interval of the draws; unbounded ends are None."""
    drawn = np.asarray(values, dtype=np.float64)
    tail = (1 - level) / 2
    low, middle, high = np.quantile(drawn, [tail, 0.5, 1 - tail], method="nearest")
    ends = [float(end) if np.isfinite(end) else None for end in (low, high)]
    return Quantity(float(middle), Interval(ends[0], ends[1], level, "draws of the fitted model"))
