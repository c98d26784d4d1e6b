"""Ranks by host, for MPI libraries that do not name the rank on a connection.

These are MPICH, Intel MPI and UCX. A host with one rank identifies it; packets do not distinguish several ranks of a
host.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from analysis.kernels.tcp_state import UNKNOWN
from analysis.numbers import plural
from analysis.traffic.flows import FlowSet

Rows = npt.NDArray[np.bool_]
_MOST_NAMED: Final = 3
_SILENT: Final = "the MPI library does not name the rank on a connection"


@dataclass(frozen=True, slots=True)
class PlacedRanks:
    """Connections that carry MPI, and their ends whose rank follows from the host."""

    of_mpi: Rows
    """Shape (C,)."""
    ends: Rows
    """Shape (C, 2): ends A and B."""
    crowded: Rows
    """Shape (C, 2): ends of MPI at hosts that hold several ranks."""

    @classmethod
    def in_flows(cls, flows: FlowSet, member: Rows | None, host_ranks: Mapping[str, Sequence[int]]) -> PlacedRanks:
        """Find them, and write the ranks that no handshake names to ``flows.records``.

        ``member`` (F,) marks flows that carry MPI (None: none), ``host_ranks`` are the ranks at each address. With several MPI jobs in
        a capture the ranks are ambiguous, and none is placed.
        """
        records = flows.records
        of_mpi = np.zeros(len(records), np.bool_) if member is None else flows.chosen(member)
        ends, crowded = np.zeros((len(records), 2), np.bool_), np.zeros((len(records), 2), np.bool_)
        if not of_mpi.any():
            return cls(of_mpi, ends, crowded)
        one_job = len(np.unique(records["jobid"][records["jobid"] >= 0])) < 2
        counts, alone = (np.zeros(len(flows.hosts), np.int64) for _ in range(2))  # untouched zeros take no memory
        for address, number in flows.hosts.numbers_of(host_ranks).items():
            counts[number] = len(host_ranks[address])
            alone[number] = host_ranks[address][0] - UNKNOWN if counts[number] == 1 else 0
        for column, end in enumerate(("a", "b")):
            silent = of_mpi & (records[f"rank_{end}"] == UNKNOWN)
            host = records[f"host_{end}"][silent]
            crowded[silent, column] = counts[host] > 1
            if one_job:
                ends[silent, column] = alone[host] > 0
                records[f"rank_{end}"][silent] = alone[host] + UNKNOWN
        return cls(of_mpi, ends, crowded)

    def why_by_host(self, flows: FlowSet, nameless: Rows) -> str | None:
        """Return why MPI connections among ``nameless`` (C,) have no ranks, or None."""
        nameless = nameless & self.of_mpi
        if not nameless.any():
            return None
        numbers: set[Any] = set()
        for column, end in enumerate(("a", "b")):
            numbers.update(flows.records[f"host_{end}"][nameless & self.crowded[:, column]].tolist())
        if not numbers:
            return f"{_SILENT}, and the hosts of the ranks are unknown"
        names = sorted(flows.hosts[number] for number in numbers)
        others = len(names) - _MOST_NAMED
        named = ", ".join(names[:_MOST_NAMED]) + (f" and {plural(others, 'other host')}" if others > 0 else "")
        return f"{_SILENT}, and several ranks ran on {named}"
