"""Economics: price per GFLOP/s, MFLOP/s per watt, and the cost of contention.

Amounts are in the currency of the facts that are given; nothing is converted. Formulas are those of the published studies
``eadline-2006-hpl`` and ``york-staging`` (docs/explanation/studies.md, Peak, price and power).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

HOURS_PER_YEAR: Final = 8766.0
"""365.25 days."""


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """Facts of the whole cluster; None if unknown."""

    hosts: int | None = None
    cores_per_host: int = 1
    clock_hz: float | None = None
    flops_per_cycle: float | None = None
    """Floating-point operations of one core in one clock cycle."""
    price: float | None = None
    """Price of the whole cluster."""
    watts: float | None = None
    """Power of the whole cluster under load."""
    price_per_host_hour: float | None = None
    """Rent; None takes the price over the years of use."""
    years_of_use: float | None = None
    price_per_kwh: float | None = None

    @property
    def cores(self) -> int | None:
        return None if self.hosts is None else self.hosts * self.cores_per_host

    @property
    def peak_flops(self) -> float | None:
        """Return the theoretical peak in FLOP/s: clock x cores x operations per cycle."""
        if self.clock_hz is None or self.flops_per_cycle is None or self.cores is None:
            return None
        return self.clock_hz * self.cores * self.flops_per_cycle

    @property
    def host_hour(self) -> float | None:
        """Return the cost of one host per hour: rent, or price by years of use, and power."""
        rent = self.price_per_host_hour
        if rent is None and self.price is not None and self.hosts and self.years_of_use:
            rent = self.price / self.hosts / (self.years_of_use * HOURS_PER_YEAR)
        if rent is None or self.watts is None or not self.hosts or self.price_per_kwh is None:
            return rent
        return rent + self.watts / self.hosts / 1000 * self.price_per_kwh


@dataclass(frozen=True, slots=True)
class Rating:
    """Rate of floating-point work against the cluster's facts; None without them."""

    gflops: float
    peak_share: float | None
    price_per_gflops: float | None
    mflops_per_watt: float | None


def rate(gflops: float, facts: ClusterFacts) -> Rating:
    """Rate a result in GFLOP/s (HPL's unit); ValueError when it is not positive."""
    if gflops <= 0:
        raise ValueError("the rate must be positive")
    return Rating(
        gflops=gflops,
        peak_share=None if facts.peak_flops is None else gflops * 1e9 / facts.peak_flops,
        price_per_gflops=None if facts.price is None else facts.price / gflops,
        mflops_per_watt=None if facts.watts is None else gflops * 1e3 / facts.watts,
    )


@dataclass(frozen=True, slots=True)
class Contention:
    """The cost of contention, against the same work without it."""

    utilisation_lost: float
    """Share of the run in which hosts are held for the contention alone."""
    price_lost: float | None


def contention(elapsed_s: float, uncontended_s: float, hosts: float, facts: ClusterFacts | None = None) -> Contention:
    """Return the cost of contention: a run against the same run without it.

    ValueError unless both times and the hosts are positive. A run that is faster than the uncontended one loses nothing.
    """
    if min(elapsed_s, uncontended_s, hosts) <= 0:
        raise ValueError("times and hosts must be positive")
    lost_s = max(elapsed_s - uncontended_s, 0.0) * hosts
    hour = (facts or ClusterFacts()).host_hour
    return Contention(
        utilisation_lost=lost_s / (elapsed_s * hosts),
        price_lost=None if hour is None else lost_s / 3600 * hour,
    )
