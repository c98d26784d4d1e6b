"""What a message takes on a link of the test-bed beyond delay and rate of its certificate, by ping-pongs on the same links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import scipy  # scipy.optimize is loaded when it is first used

from analysis.sensitivity import Link

EAGER_BYTES: Final = 1 << 16
"""Larger messages are asked for first (Open MPI's TCP)."""
FEWEST: Final = 3


@dataclass(frozen=True, slots=True)
class Exchange:
    """One ping-pong: what half of a round trip of a message took on a certified link."""

    link: Link
    bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """A message of n bytes takes k (delay + overhead) + 8 n / (share x rate); k is 1 up to EAGER_BYTES.

    ``scatter``: standard deviation of the logarithm of what the exchanges took about that, whatever it comes of. ``exchanges``: how many.
    """

    overhead_s: float
    rate_share: float
    large_times: float
    scatter: float
    exchanges: int

    def seconds(self, link: Link, size: int) -> float:
        """What half of a round trip takes."""
        times = self.large_times if size > EAGER_BYTES else 1.0
        return times * (link.delay_s + self.overhead_s) + 8 * size / (self.rate_share * link.rate_bps)

    def corrected(self, link: Link) -> Link:
        """The link as a replay has to build it."""
        return Link(link.delay_s + self.overhead_s, link.rate_bps * self.rate_share, link.loss)


def calibrate(exchanges: Sequence[Exchange]) -> Calibration | None:
    """Return what explains the exchanges best on the log scale; None where there are fewer than FEWEST, or one size and link alone.

    Links with loss tell nothing of it and are left out.
    """
    used = [each for each in exchanges if not each.link.loss and each.seconds > 0 and each.bytes >= 0]
    if len(used) < FEWEST or len({(each.bytes, each.link) for each in used}) < 2:
        return None
    delay = np.array([each.link.delay_s for each in used])
    wire = np.array([8 * each.bytes / each.link.rate_bps for each in used])
    large = np.array([each.bytes > EAGER_BYTES for each in used])
    log_seconds = np.log([each.seconds for each in used])

    def residuals(parameters: np.ndarray) -> np.ndarray:
        overhead, share, times = parameters
        fitted = np.where(large, times, 1.0) * (delay + overhead * 1e-6) + wire / share
        return np.asarray(np.log(fitted) - log_seconds)

    start, least, most = [20.0, 0.95, 1.5], [0.01, 0.05, 1.0], [1e4, 1.5, 20.0]
    # Few exchanges, and now and then one beside other load: it must not bend the others.
    found = scipy.optimize.least_squares(
        residuals, start, bounds=(least, most), x_scale=[20.0, 1.0, 1.0], loss="soft_l1", f_scale=0.1
    )
    overhead, share, times = found.x
    free = max(1, len(used) - len(start))
    scatter = float(np.sqrt((found.fun**2).sum() / free))
    return Calibration(float(overhead) * 1e-6, float(share), float(times) if large.any() else 1.0, scatter, len(used))
