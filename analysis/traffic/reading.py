"""One capture on its way through every accumulator, and the results of each."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from analysis import freed_memory
from analysis.capture.tables import DecoderName, Progress, tables_of
from analysis.kernels.rates import ALL
from analysis.packets import PacketTable
from analysis.traffic.chains import ChainAccumulator
from analysis.traffic.concurrency import Crew, Later
from analysis.traffic.flows import Limits
from analysis.traffic.matrices import MatrixAccumulator
from analysis.traffic.placed_ranks import PlacedRanks
from analysis.traffic.ports import PortAccumulator
from analysis.traffic.roce import RoceAccumulator
from analysis.traffic.scopes import Arrivals, Described, MpiFlows
from analysis.traffic.tcp import TcpAccumulator
from analysis.traffic.trust import TrustAccumulator

T = TypeVar("T")

MOST_FLOWS: Final = 2_000
"""Connections that get a row of their own; with a hundred thousand the rows alone would take a gigabyte."""
_MANY_HOSTS, _VERY_MANY_HOSTS = 4096, 1 << 16
"""So many, or more connections than are followed, need memory for their results that others have used before; very many need it
at every table."""

Rows = npt.NDArray[np.bool_]
Measured = tuple[dict[str, float], dict[str, str]]
"""Metrics, and why others are not available."""


@dataclass(frozen=True, slots=True)
class Connected:
    """What the connections say, gathered beside the rates."""

    count: int
    torn_by_networks: int
    limits: Limits
    everything: Measured
    mpi: Measured
    flows: list[dict[str, Any]]
    matrices: dict[str, Any]


@dataclass(frozen=True, slots=True)
class OfHosts:
    """What hosts did beside their connections."""

    ports: Measured
    chains: Measured
    roce: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Asked:
    """What the results depend on beside the capture; as in ``analyse``."""

    bootstrap: int
    rank_map: Mapping[tuple[str, int], int] | None
    host_ranks: Mapping[str, Sequence[int]]


@dataclass(frozen=True, slots=True)
class Found:
    """A capture that has been read, and the results that take time."""

    reading: Reading
    everything: Described
    mpi: Described | None
    connected: Connected
    hosts: OfHosts


class Reading:
    """One capture on its way through every accumulator."""

    signs: TrustAccumulator
    mpi_flows: MpiFlows
    arrivals: Arrivals
    tcp: TcpAccumulator
    matrices: MatrixAccumulator
    ports: PortAccumulator
    chains: ChainAccumulator
    roce: RoceAccumulator

    def __init__(self, mtu: int | None, mpi_ports: tuple[int, int] | None, link_rate_bps: float | None) -> None:
        """As in ``analyse``."""
        self._mtu, self._mpi_ports, self._link_rate_bps = mtu, mpi_ports, link_rate_bps
        self.facts: dict[str, Any] = {}

    def _begin(self) -> None:
        """While the first table is read: empty tables are megabytes."""
        self.signs, self.mpi_flows = TrustAccumulator(self._mtu), MpiFlows(self._mpi_ports)
        self.arrivals, self.tcp, self.matrices = Arrivals(), TcpAccumulator(), MatrixAccumulator()
        self.ports, self.chains, self.roce = PortAccumulator(), ChainAccumulator(self._link_rate_bps), RoceAccumulator()

    def read(self, path: str | Path, decoder: DecoderName, progress: Progress | None, asked: Asked) -> Found:
        """Every packet, and then the results: each lane goes on with those of what it has followed, and waits for no other."""
        crew = Crew(apart=decoder != "pyshark")
        hosts, connections, arriving = crew.lane(), crew.lane(), crew.lane()
        arrived: list[Callable[[], list[Described]]] = []
        connected: list[Later[Callable[[], Connected]]] = []
        of_hosts: list[Later[OfHosts]] = []

        def arrive(table: PacketTable) -> None:
            table, duplicate = self.signs.update(table)
            skip = duplicate if duplicate.any() else None
            member = self.mpi_flows.update(table)
            until_now = member[: len(table.flow_endpoints)].copy() if self.mpi_flows.any else member[:0]
            connections.submit(functools.partial(self._follow_connections, table, skip, until_now))
            hosts.submit(functools.partial(self._follow_hosts, table, skip))
            self.arrivals.update(table, member)

        def conclude() -> None:
            of_hosts.append(hosts.result_of(self._of_hosts))
            connected.append(connections.result_of(functools.partial(self._connected, asked, crew)))
            if not self.mpi_flows.found_late:
                arrived.append(self.arrivals.results(self.mpi_flows.any, asked.bootstrap, crew))

        tables = tables_of(path, decoder, facts=self.facts, progress=progress)
        arriving.submit(self._begin)
        crew.draw(tables, arriving, arrive, conclude)
        crew.run()
        if self.mpi_flows.found_late:  # rare: exactness is worth a second reading
            arrived.append(self._arrive_again(path, decoder, asked))
        everything, *mpi = arrived[0]()
        return Found(self, everything, mpi[0] if mpi else None, connected[0]()(), of_hosts[0]())

    def _arrive_again(self, path: str | Path, decoder: DecoderName, asked: Asked) -> Callable[[], list[Described]]:
        self.arrivals = Arrivals()
        crew = Crew(apart=decoder != "pyshark")
        arrived: list[Callable[[], list[Described]]] = []

        def arrive(table: PacketTable) -> None:
            self.arrivals.update(self.signs.again(table), self.mpi_flows.member)

        def conclude() -> None:
            arrived.append(self.arrivals.results(self.mpi_flows.any, asked.bootstrap, crew))

        crew.draw(tables_of(path, decoder), crew.lane(), arrive, conclude)
        crew.run()
        return arrived[0]

    def _follow_connections(self, table: PacketTable, skip: Rows | None, member: Rows) -> None:
        self.tcp.update(table, skip, member)
        self.matrices.update(table, skip)
        if self.matrices.hosts > _VERY_MANY_HOSTS:
            freed_memory.give_back()

    def _follow_hosts(self, table: PacketTable, skip: Rows | None) -> None:
        self.ports.update(table, skip)
        self.chains.update(table, skip)
        self.roce.update(table)

    def _of_hosts(self) -> OfHosts:
        duration_ns = self.arrivals.rates.duration_ns(ALL)
        return OfHosts(self.ports.metrics(duration_ns), self.chains.metrics(), self.roce.result())

    @property
    def _member(self) -> Rows | None:
        return self.mpi_flows.member if self.mpi_flows.any else None

    def left_out(self) -> dict[str, int]:
        """What bounded memory left out of matrices and queue pairs."""
        return self.matrices.left_out() | self.roce.left_out()

    def notes(self) -> list[str]:
        """What bounded memory made approximate."""
        peaks = "peak rates are lower bounds: more time stamps lie within a window than are kept"
        sizes = "frames are of so many sizes beyond 64 KiB that those are grouped, to 0.05 %"
        rates = self.arrivals.rates
        told = ((peaks, rates.peaks_are_bounds), (sizes, rates.sizes_are_grouped))
        return [*self.matrices.notes(), *(note for note, holds in told if holds)]

    def _connected(self, asked: Asked, crew: Crew) -> Callable[[], Connected]:
        """To be asked for once ``crew`` is done."""
        large = self.matrices.hosts > _MANY_HOSTS or self.tcp.has_set_aside
        beside = _at_once if large else crew.beside  # side by side each would need memory of its own
        if large:
            freed_memory.give_back()
        flow_set, member = self.tcp.conclude(), self._member
        placed = PlacedRanks.in_flows(flow_set, member, asked.host_ranks)  # writes ranks that the rows below tell
        flows = beside(functools.partial(flow_set.flows, limit=MOST_FLOWS))
        everything = beside(flow_set.metrics)
        mpi = beside(_no_metrics if member is None else functools.partial(flow_set.metrics, member))
        matrices = self.matrices.result(flow_set, rank_map=asked.rank_map, placed=placed)
        counts = flow_set.connections, flow_set.torn_by_networks, flow_set.limits
        return lambda: Connected(*counts, everything=everything(), mpi=mpi(), flows=flows(), matrices=matrices)


def _at_once(call: Callable[[], T]) -> Callable[[], T]:
    value = call()
    return lambda: value


def _no_metrics() -> Measured:
    return {}, {}
