"""Simulated programs whose needs are known by construction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analysis.sensitivity import Link, Run, Runs

GIGABIT = 1e9
HERE = Link(30e-6, GIGABIT)
STAR = (
    HERE,
    *(Link(delay, GIGABIT) for delay in (0.12e-3, 0.25e-3, 0.5e-3, 1e-3)),
    *(Link(30e-6, rate) for rate in (500e6, 250e6, 100e6)),
    Link(1e-3, 100e6),
)


@dataclass(frozen=True)
class Program:
    """Elapsed time by computing, sequential messages, bits and their overlap."""

    computing_s: float = 3.0
    messages: float = 4000.0
    bits: float = 100e6
    hidden_delay_s: float = 0.0
    hidden_inverse_rate: float = 0.0
    per_loss_s: float = 0.0

    def elapsed(self, link: Link) -> float:
        return (
            self.computing_s
            + self.messages * max(0.0, link.delay_s - self.hidden_delay_s)
            + self.bits * max(0.0, link.inverse_rate - self.hidden_inverse_rate)
            + self.per_loss_s * link.loss
        )

    def runs(
        self, scatter: float, *, links: Sequence[Link] = STAR, repetitions: int = 2, seed: int | np.random.Generator = 7
    ) -> Runs:
        random = np.random.default_rng(seed)
        return Runs.of(
            [
                Run(link, self.elapsed(link) * float(np.exp(scatter * random.standard_normal())))
                for link in links
                for _ in range(repetitions)
            ]
        )
