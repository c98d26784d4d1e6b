"""Which links to measure: the few points over delay, rate and loss from which slopes and bends follow.

Both slopes need a point where their effect is about as large as the program's own time, and both bends points on the way there:
the delays and inverse rates halve from the harshest one. One corner tells whether the two add up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from analysis.sensitivity.links import Link

_HALVINGS: Final = (0.125, 0.25, 0.5, 1.0)
_HARSHEST_DELAY_S: Final = 1e-3
_MOST_DELAY_S: Final = 0.2
_SLOWEST: Final = 0.1
"""The slowest rate as a share of the one here, where nothing is known of the volume."""


@dataclass(frozen=True, slots=True)
class Known:
    """What an earlier trial tells of the program at this size; None where it does not."""

    elapsed_s: float | None = None
    messages: float | None = None
    """Messages of the busiest rank: all of them could wait for each other, so the delay found from them is the smallest needed."""
    bits: float | None = None
    """Sent over the fullest link."""


def propose(here: Link, known: Known = Known(), *, losses: tuple[float, ...] = ()) -> tuple[Link, ...]:
    """Return the links to measure, ``here`` first.

    Without knowledge: up to a millisecond of delay and down to a tenth of the rate. ``losses`` are shares of packets; each is
    measured on the link here and at the harshest delay, as recoveries cost time-outs and round trips.
    """
    delay, rate = _harshest_delay(here, known), _slowest_rate(here, known)
    added = (delay - here.delay_s) if delay > here.delay_s else delay
    delays = [here.delay_s + share * added for share in _HALVINGS]
    slower = 1 / rate - here.inverse_rate
    rates = [1 / (here.inverse_rate + share * slower) for share in _HALVINGS]
    links = [here]
    links += [Link(_rounded(d), here.rate_bps, here.loss) for d in delays]
    links += [Link(here.delay_s, _rounded(r), here.loss) for r in rates]
    links.append(Link(_rounded(delays[-1]), _rounded(rates[-1]), here.loss))
    for loss in losses:
        links += [Link(d, here.rate_bps, loss) for d in (here.delay_s, _rounded(delays[-1]))]
    return tuple(dict.fromkeys(links))


def _harshest_delay(here: Link, known: Known) -> float:
    if not known.elapsed_s or not known.messages:
        return max(_HARSHEST_DELAY_S, 4 * here.delay_s)
    return min(_MOST_DELAY_S, max(known.elapsed_s / known.messages, 2 * here.delay_s, 50e-6))


def _slowest_rate(here: Link, known: Known) -> float:
    if not known.elapsed_s or not known.bits:
        return _SLOWEST * here.rate_bps
    return max(_SLOWEST / 10 * here.rate_bps, min(0.5 * here.rate_bps, known.bits / known.elapsed_s))


def _rounded(value: float) -> float:
    """Two digits: links are asked for in round numbers."""
    return float(f"{value:.1e}")
