"""Reading of a capture through all accumulators, and their results."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from analysis.capture.tables import DecoderName, Progress, tables_of
from analysis.kernels.rates import ALL, MPI
from analysis.packets import PacketTable
from analysis.traffic.chains import ChainAccumulator
from analysis.traffic.flows import Limits
from analysis.traffic.matrices import MatrixAccumulator
from analysis.traffic.placed_ranks import PlacedRanks
from analysis.traffic.ports import PortAccumulator
from analysis.traffic.roce import RoceAccumulator
from analysis.traffic.scopes import Arrivals, Described, MpiFlows
from analysis.traffic.tcp import TcpAccumulator
from analysis.traffic.trust import TrustAccumulator

MOST_FLOWS: Final = 2_000
"""Connections with rows of their own; 100 000 rows would take a gigabyte."""
DEPTH: Final = 2
"""Tables that may wait for the second thread: enough to smooth, few enough for memory to stay bounded."""

Rows = npt.NDArray[np.bool_]
MetricsAndReasons = tuple[dict[str, float], dict[str, str]]
"""Metrics, and reasons for absent ones."""


@dataclass(frozen=True, slots=True)
class ConnectionResults:
    """Results of the connections."""

    count: int
    limits: Limits
    everything: MetricsAndReasons
    mpi: MetricsAndReasons
    flows: list[dict[str, Any]]
    matrices: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ReadResults:
    """The results of a capture."""

    reading: Reading
    everything: Described
    mpi: Described | None
    connected: ConnectionResults


class _Caller(Executor):
    """An executor without a thread, whose processor time is the caller's."""

    def submit(self, function: Any, /, *args: Any, **options: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(function(*args, **options))
        return future


class Reading:
    """A capture and its accumulators."""

    def __init__(self, mtu: int | None, mpi_ports: tuple[int, int] | None, link_rate_bps: float | None) -> None:
        """Create the accumulators; arguments as in ``analyse``."""
        self.facts: dict[str, Any] = {}
        self.signs, self.mpi_flows = TrustAccumulator(mtu), MpiFlows(mpi_ports)
        self.arrivals, self.tcp, self.matrices = Arrivals(), TcpAccumulator(), MatrixAccumulator()
        self.ports, self.chains, self.roce = PortAccumulator(), ChainAccumulator(link_rate_bps), RoceAccumulator()

    def read(
        self,
        path: str | Path,
        decoder: DecoderName,
        progress: Progress | None,
        bootstrap: int,
        host_ranks: Mapping[str, Sequence[int]],
        *,
        one_thread: bool,
    ) -> ReadResults:
        """Read all packets, then compute the results, in two threads or ``one_thread``.

        This thread reads and measures volume and rates; the other follows connections and hosts, at most DEPTH tables later.
        """
        with _Caller() if one_thread else ThreadPoolExecutor(1) as other:
            waiting: deque[Future[None]] = deque()
            for table in tables_of(path, decoder, facts=self.facts, progress=progress):
                on_the_wire, duplicate = self.signs.update(table)
                member = self.mpi_flows.update(on_the_wire)
                if len(waiting) == DEPTH:
                    waiting.popleft().result()
                waiting.append(other.submit(self._follow, on_the_wire, duplicate if duplicate.any() else None))
                self.arrivals.update(on_the_wire, member)
            for followed in waiting:
                followed.result()
            connected = other.submit(self._connected, host_ranks)
            if self.mpi_flows.found_late:  # rare: exact results need a second reading
                self._arrive_again(path, decoder, progress)
            everything = self.arrivals.described(ALL, bootstrap)
            mpi = self.arrivals.described(MPI, bootstrap) if self.mpi_flows.any else None
            return ReadResults(self, everything, mpi, connected.result())

    def _arrive_again(self, path: str | Path, decoder: DecoderName, progress: Progress | None) -> None:
        self.arrivals = Arrivals()
        for table in tables_of(path, decoder, progress=progress):
            self.arrivals.update(self.signs.again(table), self.mpi_flows.member)

    def _follow(self, table: PacketTable, skip: Rows | None) -> None:
        self.tcp.update(table, skip)
        self.matrices.update(table, skip)
        self.ports.update(table, skip)
        self.chains.update(table, skip)
        self.roce.update(table)

    def left_out(self) -> dict[str, int]:
        """Return counts of data beyond the capacity of matrices and queue pairs."""
        return self.matrices.left_out() | self.roce.left_out()

    def notes(self) -> list[str]:
        """Return notes on approximate results."""
        peaks = "peak rates are lower bounds: too many different timestamps within a window"
        return [peaks] if self.arrivals.rates.peaks_are_bounds else []

    def _connected(self, host_ranks: Mapping[str, Sequence[int]]) -> ConnectionResults:
        flow_set, member = self.tcp.result(), self.mpi_flows.member if self.mpi_flows.any else None
        placed = PlacedRanks.in_flows(flow_set, member, host_ranks)  # writes ranks for the rows below
        return ConnectionResults(
            len(flow_set),
            flow_set.limits,
            everything=flow_set.metrics(),
            mpi=({}, {}) if member is None else flow_set.metrics(member),
            flows=flow_set.flows(limit=MOST_FLOWS),
            matrices=self.matrices.result(flow_set, placed),
        )
