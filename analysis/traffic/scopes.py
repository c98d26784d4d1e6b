"""Scopes: all and MPI traffic, their flows, volume, rates and gaps."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.memory import reserved
from analysis.packets import MOST_FLOWS, NO_FLOW, PacketTable
from analysis.traffic import interarrival
from analysis.traffic.dispersion import bunching
from analysis.traffic.interarrival import GapStore, Interarrival
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
        return {part.name: getattr(self, part.name) for part in fields(self)}


class MpiFlows:
    """MPI flows: TCP in the launcher's port range, or a library's handshake."""

    def __init__(self, ports: tuple[int, int] | None) -> None:
        self._ports = ports
        self._known = 0
        self.member = reserved(MOST_FLOWS, np.bool_)
        self.found_late = False
        """A flow was identified as MPI after some of its packets had counted as other traffic."""

    def update(self, table: PacketTable) -> npt.NDArray[np.bool_]:
        """Add the flows of a table; return the mask of MPI flows."""
        flows = len(table.flow_endpoints)
        if self._ports is None:
            opened = table.flow[table.btl_handshakes[:, 0]]
            opened = opened[opened != NO_FLOW]  # flows without room in the table
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
        """True if any flow carries MPI."""
        return bool(self.member.any())


Described = tuple[ScopeAnalysis, ScopeRates]


class Arrivals:
    """Rates and gaps of both scopes, accumulated by table."""

    def __init__(self) -> None:
        self.rates = RateAccumulator()
        self.gaps = (GapStore(), GapStore())

    def update(self, table: PacketTable, member: npt.NDArray[np.bool_]) -> None:
        """Add a table; ``member`` marks the flows that carry MPI."""
        for store, gaps in zip(self.gaps, self.rates.update(table, member), strict=True):
            store.add(gaps)

    def described(self, scope: int, bootstrap: int) -> Described:
        """Return volume, rates and gaps of ALL or MPI traffic."""
        rates = self.rates.scope(scope)
        return _described(rates, self.gaps[scope], bootstrap), rates


def _described(rates: ScopeRates, gaps: GapStore, bootstrap: int) -> ScopeAnalysis:
    sizes, packets = rates.size_histogram()
    metrics, missing = rates.result((sizes, packets))
    histogram = {"orig_len": sizes.tolist(), "packets": packets.tolist()}
    result = ScopeAnalysis(metrics, missing, rates.series(), size_histogram=histogram)
    reason = rates.without_time()
    if reason is not None:
        missing.update(interarrival.absent(reason))
        return result
    for part in (Interarrival(gaps, rates.duration_ns, bootstrap), bunching(rates.counts(), rates.bin_ns)):
        metrics.update(part.metrics)
        missing.update(part.not_available)
        result.interarrival.update(part.details)
    return result
