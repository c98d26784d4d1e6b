"""Where scaling would stop on another network: T(N) by the fit of each N, with the network terms of that link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analysis.sensitivity.fit import Fit
from analysis.sensitivity.links import Link
from analysis.sensitivity.model import Quantity, quantity
from analysis.sensitivity.needs import within


@dataclass(frozen=True, slots=True)
class Stop:
    """One program at several sizes on one link."""

    link: Link
    elapsed: tuple[Quantity, ...]
    """Seconds at each size, as a median of trials."""
    best: int
    """Place of the size that is the fastest in most draws."""
    share: float
    """Share of the draws in which it is."""
    measured: bool
    """Whether the link lies within the range of links that every fit rests on."""


def stop(fits: Sequence[Fit], link: Link) -> Stop:
    """Return where scaling stops on ``link``; ``fits`` by ascending size. ValueError for fewer than two sizes."""
    if len(fits) < 2:
        raise ValueError("scaling takes at least two sizes")
    draws = min(len(fit.draws) for fit in fits)
    elapsed = np.stack([fit.draws.first(draws).elapsed(link) for fit in fits])
    wins = np.bincount(elapsed.argmin(axis=0), minlength=len(fits))
    return Stop(
        link,
        tuple(quantity(row) for row in elapsed),
        int(wins.argmax()),
        float(wins.max() / draws),
        all(within(fit, link) for fit in fits),
    )
