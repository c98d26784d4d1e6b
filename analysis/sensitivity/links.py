"""A link as a model sees it, and what was measured on one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from analysis.statistics.summary import Floats

DELAY_ERROR_S: Final = 5e-6
RATE_ERROR: Final = 2e-3
"""Standard deviations of a certificate's one-way delay in seconds, and of its rate as a share."""


@dataclass(frozen=True, slots=True)
class Link:
    """What one network offers between two hosts. Where a link was measured, these are its certified values, not those asked for."""

    delay_s: float
    """One way."""
    rate_bps: float
    loss: float = 0.0
    """Share of packets, 0 to 1."""

    @property
    def inverse_rate(self) -> float:
        """Seconds per bit."""
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
        """ValueError for times or rates that are not positive, negative delays, and loss outside of 0 to 1."""
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
