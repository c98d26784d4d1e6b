"""Overhead of messages beyond a link's certificate, from ping-pongs on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import scipy  # scipy.optimize is loaded when it is first used

from analysis.sensitivity import Link

EAGER_BYTES: Final = 1 << 16
"""Larger messages use the rendezvous protocol (Open MPI's TCP)."""
FEWEST: Final = 3


@dataclass(frozen=True, slots=True)
class Exchange:
    """One ping-pong: half of the round-trip time of a message on a certified link."""

    link: Link
    bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """A message of n bytes takes k (delay + overhead) + 8 n / (share x rate).

    k is 1 up to EAGER_BYTES. ``scatter``: standard deviation of the logarithm of the residuals. ``exchanges``: their
    number.
    """

    overhead_s: float
    rate_share: float
    large_times: float
    scatter: float
    exchanges: int

    def seconds(self, link: Link, size: int) -> float:
        """Return half of the round-trip time."""
        times = self.large_times if size > EAGER_BYTES else 1.0
        return times * (link.delay_s + self.overhead_s) + 8 * size / (self.rate_share * link.rate_bps)

    def corrected(self, link: Link) -> Link:
        """Return the link for a replay."""
        return Link(link.delay_s + self.overhead_s, link.rate_bps * self.rate_share, link.loss)


def calibrate(exchanges: Sequence[Exchange]) -> Calibration | None:
    """Fit the exchanges on the log scale; None for too few or equal ones.

    Links with loss are excluded.
    """
    used = [
        exchange for exchange in exchanges if not exchange.link.loss and exchange.seconds > 0 and exchange.bytes >= 0
    ]
    if len(used) < FEWEST or len({(exchange.bytes, exchange.link) for exchange in used}) < 2:
        return None
    delay = np.array([exchange.link.delay_s for exchange in used])
    wire = np.array([8 * exchange.bytes / exchange.link.rate_bps for exchange in used])
    large = np.array([exchange.bytes > EAGER_BYTES for exchange in used])
    log_seconds = np.log([exchange.seconds for exchange in used])

    def residuals(parameters: np.ndarray) -> np.ndarray:
        overhead, share, times = parameters
        fitted = np.where(large, times, 1.0) * (delay + overhead * 1e-6) + wire / share
        return np.asarray(np.log(fitted) - log_seconds)

    start, least, most = [20.0, 0.95, 1.5], [0.01, 0.05, 1.0], [1e4, 1.5, 20.0]
    # A robust loss: some of the few exchanges ran under other load.
    fit = scipy.optimize.least_squares(
        residuals, start, bounds=(least, most), x_scale=[20.0, 1.0, 1.0], loss="soft_l1", f_scale=0.1
    )
    overhead, share, times = fit.x
    free = max(1, len(used) - len(start))
    scatter = float(np.sqrt((fit.fun**2).sum() / free))
    return Calibration(float(overhead) * 1e-6, float(share), float(times) if large.any() else 1.0, scatter, len(used))
