"""Ranks by place: MPI libraries that do not say on a connection who speaks (MPICH, Intel MPI, UCX) are known by host, and a host
with one rank is that rank. Where several ranks share a host, nothing in a packet tells them apart."""

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
_SILENT: Final = "the MPI library does not say on a connection which rank speaks"


@dataclass(frozen=True, slots=True)
class PlacedRanks:
    """Which connections carry MPI, and which of their ends have their rank from the host alone."""

    of_mpi: Rows
    """Shape (C,)."""
    ends: Rows
    """Shape (C, 2): ends A and B."""
    crowded: Rows
    """Shape (C, 2): ends of MPI at hosts that hold several ranks."""

    @classmethod
    def in_flows(cls, flows: FlowSet, member: Rows | None, host_ranks: Mapping[str, Sequence[int]]) -> PlacedRanks:
        """Find them, and write the ranks to ``flows.records`` where no greeting told any.

        ``member`` (F,) says which flows carry MPI (None: none), ``host_ranks`` the ranks that ran at each address. Of several
        MPI jobs in one capture nobody knows whose ranks those are: none is placed.
        """
        records = flows.records
        of_mpi = np.zeros(len(records), np.bool_) if member is None else flows.chosen(member)
        ends, crowded = np.zeros((len(records), 2), np.bool_), np.zeros((len(records), 2), np.bool_)
        if not of_mpi.any():
            return cls(of_mpi, ends, crowded)
        one_job = len(np.unique(records["jobid"][records["jobid"] >= 0])) < 2
        counts, alone = (
            np.zeros(len(flows.hosts), np.int64) for _ in range(2)
        )  # zeros nobody has touched are no memory
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
        """Why the connections of MPI among ``nameless`` (C,) are known by host alone; None where there are none."""
        nameless = nameless & self.of_mpi
        if not nameless.any():
            return None
        numbers: set[Any] = set()
        for column, end in enumerate(("a", "b")):
            numbers.update(flows.records[f"host_{end}"][nameless & self.crowded[:, column]].tolist())
        if not numbers:
            return f"{_SILENT}, and it is not known which ranks ran on which host"
        names = sorted(flows.hosts[number] for number in numbers)
        others = len(names) - _MOST_NAMED
        named = ", ".join(names[:_MOST_NAMED]) + (f" and {plural(others, 'other host')}" if others > 0 else "")
        return f"{_SILENT}, and several ranks ran on {named}"
