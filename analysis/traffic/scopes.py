"""All traffic and MPI traffic: which flows are MPI, and what both scopes say of volume, rates and inter-arrival."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.kernels.rates import ALL, MPI
from analysis.packets import NO_FLOW, PacketTable
from analysis.traffic import interarrival
from analysis.traffic.concurrency import Crew
from analysis.traffic.dispersion import Bunching, bunching
from analysis.traffic.interarrival import GapStore, InterarrivalResult
from analysis.traffic.rates import RateAccumulator, ScopeRates


@dataclass(frozen=True, slots=True)
class ScopeAnalysis:
    """All metrics of one scope; shapes as in CaptureAnalysis."""

    metrics: dict[str, float] = field(default_factory=dict)
    not_available: dict[str, str] = field(default_factory=dict)
    series: dict[str, Any] = field(default_factory=dict)
    interarrival: dict[str, Any] = field(default_factory=dict)
    size_histogram: dict[str, list[int]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {
            "metrics": self.metrics,
            "not_available": self.not_available,
            "series": self.series,
            "interarrival": self.interarrival,
            "size_histogram": self.size_histogram,
        }


class MpiFlows:
    """Which flows carry MPI: TCP with an end in the launcher's port range, else flows that open as MPI libraries do."""

    def __init__(self, ports: tuple[int, int] | None) -> None:
        self._ports = ports
        self._known = 0
        self.member = np.zeros(1024, np.bool_)
        self.found_late = False
        """A flow turned out to be MPI after packets of it had been accumulated as other traffic."""

    def update(self, table: PacketTable) -> npt.NDArray[np.bool_]:
        """Learn from a table; returns membership per flow index."""
        flows = len(table.flow_endpoints)
        if flows > len(self.member):
            grown = np.zeros(2 * flows, np.bool_)
            grown[: self._known] = self.member[: self._known]
            self.member = grown
        if self._ports is None:
            opened = table.flow[table.btl_handshakes[:, 0]]
            opened = opened[opened != NO_FLOW]  # some have no room in the table of flows
            self.found_late |= bool(np.any((opened < self._known) & ~self.member[opened]))
            self.member[opened] = True
        else:
            low, high = self._ports
            ports = table.flow_endpoints["ports"][self._known :]
            in_range = ((ports >= low) & (ports <= high)).any(axis=1)
            self.member[self._known : flows] = in_range & (table.flow_protocol[self._known :] == 6)
        self._known = flows
        return self.member

    @property
    def any(self) -> bool:
        """Whether any flow carries MPI."""
        return bool(self.member.any())


Described = tuple[ScopeAnalysis, ScopeRates]


class Arrivals:
    """Rates and gaps of both scopes while a capture is read."""

    def __init__(self) -> None:
        self.rates = RateAccumulator()
        self.gaps = (GapStore(), GapStore())

    def update(self, table: PacketTable, member: npt.NDArray[np.bool_]) -> None:
        """Add a table; ``member`` says per flow index whether it carries MPI."""
        for store, gaps in zip(self.gaps, self.rates.update(table, member), strict=True):
            store.add(gaps, table.clock_unit_ns)

    def results(self, with_mpi: bool, bootstrap: int, crew: Crew) -> Callable[[], list[Described]]:
        """Of all traffic, and of MPI's where there is any, to be asked for once ``crew`` is done; ``bootstrap`` replicates for p-values."""
        scopes = [self.rates.scope(scope) for scope in ((ALL, MPI) if with_mpi else (ALL,))]
        # The longest first: what is left at the end is short, and no thread waits long for the other
        described = [
            crew.beside(functools.partial(_described, rates, gaps, bootstrap))
            for rates, gaps in zip(scopes, self.gaps, strict=False)
        ]
        bunched = [
            crew.beside(functools.partial(_bunching, rates)) if rates.without_time() is None else None
            for rates in scopes
        ]

        def joined() -> list[Described]:
            for later, rest in zip(described, bunched, strict=True):
                if rest is not None:
                    later().metrics.update(rest().metrics)
                    later().not_available.update(rest().not_available)
                    later().interarrival.update(rest().details)
            return [(later(), rates) for later, rates in zip(described, scopes, strict=True)]

        return joined


def _bunching(rates: ScopeRates) -> Bunching:
    return bunching(rates.counts(), rates.bin_ns)


def _described(rates: ScopeRates, gaps: GapStore, bootstrap: int) -> ScopeAnalysis:
    """But for what the bunching of packets adds."""
    sizes, packets = rates.size_histogram()
    metrics, missing = rates.result((sizes, packets))
    histogram = {"orig_len": sizes.tolist(), "packets": packets.tolist()}
    result = ScopeAnalysis(metrics, missing, rates.series(), size_histogram=histogram)
    reason = rates.without_time()
    if reason is not None:
        missing.update(interarrival.absent(reason))
        return result
    arrivals = InterarrivalResult(gaps, rates.duration_ns).compute(bootstrap)
    metrics.update(arrivals.metrics)
    missing.update(arrivals.not_available)
    result.interarrival.update(arrivals.details)
    return result
