"""What a result costs: money per GFLOP/s, MFLOP/s per watt, core-seconds, energy, and what waiting throws away.

Amounts are in the currency of the facts that are given; nothing is converted. Formulas are those of the published studies D
(Eadline and Layton 2006) and E (White Rose Grid e-Science Centre), STUDIES.md.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

from analysis.scaling.breakdown import time_breakdown
from analysis.scaling.speedup import Estimate, scaling_table
from analysis.scaling.study import Study

HOURS_PER_YEAR: Final = 8766.0
"""365.25 days."""
_J_PER_KWH: Final = 3.6e6


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What is known of the machine that ran; None where it is not. ``hosts`` and ``cores_per_host`` count the whole cluster."""

    hosts: int | None = None
    cores_per_host: int = 1
    clock_hz: float | None = None
    flops_per_cycle: float | None = None
    """Floating-point operations of one core in one clock cycle."""
    price: float | None = None
    """Of the whole cluster."""
    watts: float | None = None
    """Of the whole cluster under load."""
    price_per_host_hour: float | None = None
    """Rent; None takes the price over the years of use, when both are known."""
    years_of_use: float | None = None
    price_per_kwh: float | None = None

    @property
    def cores(self) -> int | None:
        return None if self.hosts is None else self.hosts * self.cores_per_host

    @property
    def peak_flops(self) -> float | None:
        """Theoretical peak in FLOP/s: clock x cores x operations per cycle."""
        if self.clock_hz is None or self.flops_per_cycle is None or self.cores is None:
            return None
        return self.clock_hz * self.cores * self.flops_per_cycle

    @property
    def host_hour(self) -> float | None:
        """What one host costs per hour: rent, or price spread evenly over the years of use; power comes on top."""
        if self.price_per_host_hour is not None:
            return self.price_per_host_hour
        if self.price is None or not self.hosts or not self.years_of_use:
            return None
        return self.price / self.hosts / (self.years_of_use * HOURS_PER_YEAR)

    @property
    def watts_per_host(self) -> float | None:
        return None if self.watts is None or not self.hosts else self.watts / self.hosts


@dataclass(frozen=True, slots=True)
class Rating:
    """A rate of floating-point work against the cluster's facts; None where a fact is missing."""

    gflops: float
    peak_share: float | None
    price_per_gflops: float | None
    mflops_per_watt: float | None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


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
class CostRow:
    """What one run costs at one size of a study; None where a fact is missing. Intervals follow those of the elapsed time."""

    size: float
    elapsed_s: Estimate
    resource_s: Estimate
    """Core-seconds where the ranks are known, else host-seconds."""
    resource_unit: str
    lost_resource_s: float | None
    """Of these, off the CPU: held, but not computing."""
    utilisation: float | None
    """CPU time / elapsed, mean over the ranks."""
    energy_j: Estimate | None
    """Hosts in use x watts of a host x elapsed."""
    price: Estimate | None
    """Hosts in use x (host-hour + power) x elapsed."""
    price_delay: float | None
    """Price x elapsed: its minimum weighs a shorter run against a dearer one evenly."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def cost_table(study: Study, facts: ClusterFacts | None = None) -> list[CostRow]:
    """Rows by size, smallest first; the study's axis must count hosts for energy and price, and they are None otherwise."""
    known = facts or ClusterFacts()
    shares = {row.size: row.parallel_efficiency for row in time_breakdown(study)}
    rows = []
    for row in scaling_table(study):
        elapsed = Estimate(row.elapsed.median, row.elapsed.interval)
        used = min(shares[row.size], 1.0) if row.size in shares else None
        hosts = row.size if study.axis == "hosts" else None
        price = _price(elapsed, hosts, known)
        rows.append(
            CostRow(
                size=row.size,
                elapsed_s=elapsed,
                resource_s=row.cost,
                resource_unit=row.cost_unit,
                lost_resource_s=None if used is None else row.cost.value * (1 - used),
                utilisation=used,
                energy_j=_energy(elapsed, hosts, known),
                price=price,
                price_delay=None if price is None else price.value * elapsed.value,
            )
        )
    return rows


def _energy(elapsed: Estimate, hosts: float | None, facts: ClusterFacts) -> Estimate | None:
    watts = facts.watts_per_host
    if hosts is None or watts is None:
        return None
    power = hosts * watts
    return elapsed.through(lambda seconds: power * seconds)


def _price(elapsed: Estimate, hosts: float | None, facts: ClusterFacts) -> Estimate | None:
    if hosts is None or facts.host_hour is None:
        return None
    per_second = facts.host_hour / 3600
    if facts.watts_per_host is not None and facts.price_per_kwh is not None:
        per_second += facts.watts_per_host / _J_PER_KWH * facts.price_per_kwh
    each = hosts * per_second
    return elapsed.through(lambda seconds: each * seconds)


def cheapest(rows: list[CostRow]) -> CostRow | None:
    """The row with the smallest price, or, without prices, the fewest core- or host-seconds; None for no rows."""
    if all(row.price is not None for row in rows):
        return min(rows, key=lambda row: row.price.value if row.price else 0.0, default=None)
    return min(rows, key=lambda row: row.resource_s.value, default=None)


@dataclass(frozen=True, slots=True)
class Contention:
    """What contention takes from a cluster, against the same work without it."""

    utilisation_lost: float
    """Share of the run in which hosts are held for the contention alone."""
    host_seconds_lost: float
    price_lost: float | None
    speedup_without: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def contention(elapsed_s: float, uncontended_s: float, hosts: float, facts: ClusterFacts | None = None) -> Contention:
    """Cost of the difference between a run and the same run without contention (study E: pull against broadcast).

    ValueError unless both times and the hosts are positive. A run that is faster than the uncontended one loses nothing.
    """
    if min(elapsed_s, uncontended_s, hosts) <= 0:
        raise ValueError("times and hosts must be positive")
    lost_s = max(elapsed_s - uncontended_s, 0.0) * hosts
    hour = (facts or ClusterFacts()).host_hour
    return Contention(
        utilisation_lost=lost_s / (elapsed_s * hosts),
        host_seconds_lost=lost_s,
        price_lost=None if hour is None else lost_s / 3600 * hour,
        speedup_without=elapsed_s / uncontended_s,
    )
