"""Run delay of ranks: runnable without a CPU core. Pure.

The kernel's run delay was read after every long interval. Its position within an interval is unknown, and assumed to be
uniform.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from analysis.mpi.calls import Calls
from analysis.mpi.streams import Int64

Float64 = npt.NDArray[np.float64]


class Cores:
    """Run delay of the ranks of a trial."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._of: dict[int, tuple[int, Float64, Float64]] = {}

    @property
    def is_known(self) -> bool:
        """Return whether the kernel reported run delay for any call."""
        return bool((self._calls.rows["no_core_within_ns"] >= 0).any())

    def outside(self, rank: int, after_ns: Int64, until_ns: Int64) -> Float64:
        """Return the run delay between calls within each span (n,), ns."""
        if rank not in self._of:
            self._of[rank] = self._between_calls(rank)
        zero_ns, edges, before = self._of[rank]
        first, last = (np.interp(at - zero_ns, edges, before) for at in (after_ns, until_ns))
        lacked: Float64 = np.maximum(last - first, 0.0)
        return lacked

    def _between_calls(self, rank: int) -> tuple[int, Float64, Float64]:
        """Return a zero, edges of stretches from it, and the run delay before each edge."""
        calls = self._calls.of(rank)
        calls = calls[calls["no_core_before_ns"] >= 0]
        if not len(calls):
            return 0, np.zeros(1), np.zeros(1)
        zero_ns = int(calls["began_ns"][0])
        begins, ends = calls["began_ns"] - zero_ns, calls["ended_ns"] - zero_ns
        stretches = begins - np.concatenate([begins[:1], ends[:-1]])
        lacked = np.clip(calls["no_core_before_ns"], 0, np.maximum(stretches, 0))
        whole = np.cumsum(lacked)
        return zero_ns, np.stack([begins, ends], axis=1).ravel().astype(float), np.repeat(whole, 2).astype(float)


def on_one_host(hosts: Mapping[int, str], ranks: Iterable[int]) -> bool:
    """Return whether all these ranks are known to be on the same host."""
    names = {hosts.get(rank, "") for rank in ranks}
    return len(names) == 1 and names != {""}


def at_its_end(no_core_within_ns: Int64, ns: Int64) -> Float64:
    """Return the descheduled part of the last ``ns`` of calls (n,).

    A rank that has one polls, and takes what has come at once.
    """
    return np.minimum(np.maximum(no_core_within_ns, 0), ns).astype(np.float64)
