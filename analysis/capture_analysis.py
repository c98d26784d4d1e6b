"""One capture, every metric: decode, accumulate, judge."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from analysis import interarrival, legacy, trust
from analysis.concurrency import Alongside, ahead, side_by_side
from analysis.flows import Limits
from analysis.interarrival import GapStore, InterarrivalResult
from analysis.kernels.rates import ALL, MPI
from analysis.matrices import MatrixAccumulator
from analysis.packets import PacketTable
from analysis.rates import RateAccumulator, ScopeRates
from analysis.reading import DecoderName, Progress, tables_of
from analysis.tcp import TcpAccumulator
from analysis.trust import DropCounters, Trust, TrustAccumulator

MOST_FLOWS: Final = 10_000
"""Connections that get a row of their own; with a hundred thousand the rows alone would take a gigabyte."""
_NO_MPI = "no MPI traffic found: no port range given and no BTL handshake captured"


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


@dataclass(frozen=True, slots=True)
class CaptureAnalysis:
    """What a capture says. ``metrics`` holds numbers by catalogue id, ``not_available`` why the others are absent."""

    file: str
    capture: dict[str, Any]
    """Facts of the file: format, link types, packets, unread_bytes, decoder, notes ..."""
    everything: ScopeAnalysis
    mpi: ScopeAnalysis
    """The same quantities for MPI traffic alone."""
    trust: Trust
    flows: list[dict[str, Any]]
    matrices: dict[str, Any]
    duration_ns: int
    window_sum: int

    @property
    def metrics(self) -> dict[str, float]:
        return self.everything.metrics

    @property
    def not_available(self) -> dict[str, str]:
        return self.everything.not_available

    @property
    def series(self) -> dict[str, Any]:
        return self.everything.series

    @property
    def interarrival(self) -> dict[str, Any]:
        return self.everything.interarrival

    @property
    def size_histogram(self) -> dict[str, list[int]]:
        return self.everything.size_histogram

    def legacy_2011(self, rtt_s: Decimal | str | None = None) -> dict[str, str]:
        """The 2011 report, printed label -> printed digits. Raises ValueError for fewer than two packets or T = 0."""
        packets, wire_bytes = int(self.metrics["packets"]), int(self.metrics["wire_bytes"])
        return legacy.legacy_report(packets, wire_bytes, self.duration_ns, self.window_sum, rtt_s)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: what ``python -m analysis stats --json`` prints."""
        return {
            "file": self.file,
            "capture": self.capture,
            **self.everything.to_dict(),
            "trust": self.trust.to_dict(),
            "flows": self.flows,
            "matrices": self.matrices,
            "mpi": self.mpi.to_dict(),
        }


class MpiFlows:
    """Which flows carry MPI: TCP with an end in the launcher's port range, else flows that open with a BTL handshake."""

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
            self.member = np.concatenate([self.member, np.zeros(2 * flows - len(self.member), np.bool_)])
        if self._ports is None:
            opened = table.flow[table.btl_handshakes[:, 0]]
            self.found_late |= bool(np.any((opened < self._known) & ~self.member[opened]))
            self.member[opened] = True
        else:
            low, high = self._ports
            ends = table.flow_endpoints[self._known :][:, (1, 3)]
            in_range = ((ends >= low) & (ends <= high)).any(axis=1)
            self.member[self._known : flows] = in_range & (table.flow_protocol[self._known :] == 6)
        self._known = flows
        return self.member

    @property
    def any(self) -> bool:
        return bool(self.member.any())


class _Arrivals:
    """Rates and gaps of both scopes while a capture is read."""

    def __init__(self) -> None:
        self.rates = RateAccumulator()
        self.gaps = (GapStore(), GapStore())

    def update(self, table: PacketTable, member: npt.NDArray[np.bool_]) -> None:
        for store, gaps in zip(self.gaps, self.rates.update(table, member), strict=True):
            store.add(gaps)

    def result(self, scope: int, bootstrap: int) -> tuple[ScopeAnalysis, ScopeRates]:
        rates = self.rates.scope(scope)
        metrics, missing = rates.result()
        sizes, packets = rates.size_histogram()
        histogram = {"orig_len": sizes.tolist(), "packets": packets.tolist()}
        found = ScopeAnalysis(metrics, missing, rates.series(), size_histogram=histogram)
        reason = rates.without_time()
        if reason is not None:
            missing.update(interarrival.absent(reason))
            return found, rates
        arrivals = InterarrivalResult(self.gaps[scope], rates.counts(), rates.bin_ns, rates.duration_ns)
        arrivals.compute(bootstrap)
        metrics.update(arrivals.metrics)
        missing.update(arrivals.not_available)
        found.interarrival.update(arrivals.details)
        return found, rates


def analyse(
    path: str | Path,
    *,
    mpi_ports: tuple[int, int] | None = None,
    decoder: DecoderName = "auto",
    drops: DropCounters | None = None,
    mtu: int | None = None,
    rank_map: Mapping[tuple[str, int], int] | None = None,
    progress: Progress | None = None,
    bootstrap: int = 0,
) -> CaptureAnalysis:
    """Every metric of the catalogue that the capture ``path`` holds.

    ``mpi_ports`` (inclusive) is the launcher's TCP port range; ``drops`` the capture tool's report; ``mtu`` that of the
    links in bytes; ``rank_map`` {(address, port): rank} where no BTL handshake was captured; ``progress`` is called
    with (bytes read, bytes of the file); ``bootstrap`` asks for p-values of the fits from that many replicates.
    Memory stays bounded whatever the file's size. Raises CaptureError.
    """
    facts: dict[str, Any] = {}
    arrivals, signs, mpi_flows = _Arrivals(), TrustAccumulator(mtu), MpiFlows(mpi_ports)
    tcp, matrices = TcpAccumulator(), MatrixAccumulator()
    with Alongside() as connections:
        for table in ahead(tables_of(path, decoder, facts=facts, progress=progress)):
            duplicate = signs.update(table)
            connections.submit(functools.partial(tcp.update, table, duplicate))
            arrivals.update(table, mpi_flows.update(table))
            matrices.update(table, duplicate)
    if mpi_flows.found_late:  # rare: exactness is worth a second reading
        arrivals = _Arrivals()
        for table in ahead(tables_of(path, decoder)):
            arrivals.update(table, mpi_flows.member)
    member = mpi_flows.member if mpi_flows.any else None
    (everything, only_mpi), connected = side_by_side(
        lambda: side_by_side(
            lambda: arrivals.result(ALL, bootstrap),
            lambda: None if member is None else arrivals.result(MPI, bootstrap),
        ),
        lambda: _Connected.of(tcp, matrices, member, rank_map),
    )
    facts["notes"] += _left_out(connected.count, connected.limits)
    whole, rates = everything
    _add_tcp(whole, rates, connected.everything)
    mpi = _absent(whole)
    if only_mpi is not None:
        mpi, mpi_rates = only_mpi
        _add_tcp(mpi, mpi_rates, connected.mpi)
    _compare_scopes(whole, mpi)
    return CaptureAnalysis(
        file=str(path),
        capture=facts,
        everything=whole,
        mpi=mpi,
        trust=_trust(whole, facts, drops, signs, rates),
        flows=connected.flows,
        matrices=connected.matrices,
        duration_ns=rates.duration_ns,
        window_sum=rates.window_sum,
    )


def _left_out(connections: int, limits: Limits) -> list[str]:
    """What bounded memory left out of the flows and of the TCP metrics."""
    counts = (
        (max(connections - MOST_FLOWS, 0), f"connections are not listed one by one: only the {MOST_FLOWS} largest are"),
        (limits.untracked_packets, "packets belong to connections beyond the limit and are not followed"),
        (limits.gaps_forgotten, "gaps in sequence numbers were forgotten"),
        (limits.segments_forgotten, "unacknowledged segments were forgotten"),
    )
    notes = [f"{count} {what}" for count, what in counts if count]
    if limits.sampled_share < 1:
        notes.append(f"quantiles of TCP are those of {limits.sampled_share:.1%} of the samples")
    return notes


Measured = tuple[dict[str, float], dict[str, str]]


@dataclass(frozen=True, slots=True)
class _Connected:
    """What the connections say, gathered beside the rates."""

    count: int
    limits: Limits
    everything: Measured
    mpi: Measured
    flows: list[dict[str, Any]]
    matrices: dict[str, Any]

    @classmethod
    def of(
        cls,
        tcp: TcpAccumulator,
        matrices: MatrixAccumulator,
        member: npt.NDArray[np.bool_] | None,
        rank_map: Mapping[tuple[str, int], int] | None,
    ) -> _Connected:
        flow_set = tcp.result()
        mpi = ({}, {}) if member is None else flow_set.metrics(member)
        return cls(
            len(flow_set),
            flow_set.limits,
            flow_set.metrics(),
            mpi,
            flow_set.flows(limit=MOST_FLOWS),
            matrices.result(flow_set, rank_map=rank_map),
        )


def _add_tcp(analysis: ScopeAnalysis, rates: ScopeRates, measured: Measured) -> None:
    """The TCP metrics of the scope's flows and what follows from both."""
    metrics, missing = measured
    analysis.metrics.update(metrics)
    analysis.not_available.update(missing)
    reason = rates.without_time() or missing.get("goodput_bytes")
    if reason is None:
        analysis.metrics["goodput_bps"] = 8 * metrics["goodput_bytes"] / (rates.duration_ns / 1e9)
    else:
        analysis.not_available["goodput_bps"] = reason


def _absent(whole: ScopeAnalysis) -> ScopeAnalysis:
    ids = [*whole.metrics, *whole.not_available]
    return ScopeAnalysis(not_available=dict.fromkeys(ids, _NO_MPI))


def _compare_scopes(whole: ScopeAnalysis, mpi: ScopeAnalysis) -> None:
    packets = whole.metrics["packets"]
    if not packets or "packets" not in mpi.metrics:
        whole.not_available["non_mpi_share"] = _NO_MPI if packets else "no packets"
    else:
        whole.metrics["non_mpi_share"] = 1 - mpi.metrics["packets"] / packets


def _trust(
    whole: ScopeAnalysis, facts: dict[str, Any], drops: DropCounters | None, signs: TrustAccumulator, rates: ScopeRates
) -> Trust:
    """Judge, and put the counters among the metrics."""
    counters, missing = signs.counters(rates.tcp_packets)
    from_file, not_in_file = trust.file_counters(facts, drops)
    counters |= from_file
    counters["time_reversals"] = rates.reversals
    if "acked_unseen_segments" in whole.metrics:
        counters["acked_unseen_segments"] = whole.metrics["acked_unseen_segments"]
    whole.metrics.update(counters)
    whole.not_available.update(missing | not_in_file)
    return trust.judge(counters, facts, packets=rates.packets, longest_reversal_ns=rates.longest_reversal_ns)
