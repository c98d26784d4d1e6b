"""Proposed links: the few points that determine slopes and bends.

They vary delay, rate and loss. Both slopes need a point where their effect is about as large as the program's own time,
and both bends points on the way there: the delays and inverse rates halve from the harshest one. One corner shows
whether the two add up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from analysis.numbers import rounded
from analysis.sensitivity.model import Link

_HALVINGS: Final = (0.125, 0.25, 0.5, 1.0)
_HARSHEST_DELAY_S: Final = 1e-3
_MOST_DELAY_S: Final = 0.2
_SHORTEST_S: Final = 50e-6
"""Delays below this are dominated by the emulators' own delay."""
_SLOWEST: Final = 0.1
"""The slowest rate as a share of the one here, if the volume is unknown."""


@dataclass(frozen=True, slots=True)
class Known:
    """Facts of an earlier trial of the program at this size; None if unknown."""

    elapsed_s: float | None = None
    messages: float | None = None
    """Messages of the busiest rank: all of them could wait for each other, so the delay found from them is the smallest needed."""
    bits: float | None = None
    """Sent over the fullest link."""


@dataclass(frozen=True, slots=True)
class Range:
    """The harshest link to measure."""

    most_delay_s: float
    least_rate_bps: float

    @classmethod
    def around(cls, here: Link, earlier: Known | None = None) -> Range:
        """Return a range in which the effects match the program's own time.

        Without knowledge: a millisecond and a tenth of the rate.
        """
        if earlier is None or not earlier.elapsed_s:
            return cls(max(_HARSHEST_DELAY_S, 4 * here.delay_s), _SLOWEST * here.rate_bps)
        delay, rate = max(_HARSHEST_DELAY_S, 4 * here.delay_s), _SLOWEST * here.rate_bps
        if earlier.messages:
            delay = min(_MOST_DELAY_S, max(earlier.elapsed_s / earlier.messages, 2 * here.delay_s, _SHORTEST_S))
        if earlier.bits:
            rate = max(_SLOWEST / 10 * here.rate_bps, min(0.5 * here.rate_bps, earlier.bits / earlier.elapsed_s))
        return cls(delay, rate)


def propose(here: Link, to: Range | None = None, *, losses: tuple[float, ...] = ()) -> tuple[Link, ...]:
    """Return the links to measure, ``here`` first.

    ``losses`` are shares of packets; each is measured on the link here and at the most delay, as recoveries cost time-outs and
    round trips. ValueError if ``to`` is not harsher than ``here``.
    """
    to = to or Range.around(here)
    if to.most_delay_s <= here.delay_s or to.least_rate_bps >= here.rate_bps:
        raise ValueError("the range must reach to more delay and to a lower rate than the link here has")
    slower = 1 / to.least_rate_bps - here.inverse_rate
    delays = [rounded(here.delay_s + share * (to.most_delay_s - here.delay_s), 2) for share in _HALVINGS]
    rates = [rounded(1 / (here.inverse_rate + share * slower), 2) for share in _HALVINGS]
    links = [here]
    links += [Link(delay, here.rate_bps, here.loss) for delay in delays]
    links += [Link(here.delay_s, rate, here.loss) for rate in rates]
    links.append(Link(delays[-1], rates[-1], here.loss))
    for loss in losses:
        links += [Link(delay, here.rate_bps, loss) for delay in (here.delay_s, delays[-1])]
    return tuple(dict.fromkeys(links))
