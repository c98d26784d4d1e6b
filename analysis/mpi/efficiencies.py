"""Efficiencies of the POP project from useful and waiting time.

They are multiplicative, each a factor of the one above it. Source: co-design.pop-coe.eu/metrics. Useful time is the
time outside MPI between MPI_Init and MPI_Finalize.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

ATTENTION: Final = 0.8
"""An efficiency below wants attention."""


@dataclass(frozen=True, slots=True)
class Efficiencies:
    """Efficiencies of one run, as ratios."""

    load_balance: float
    communication: float

    @property
    def parallel(self) -> float:
        return self.load_balance * self.communication


def efficiencies(useful_s: Sequence[float], window_s: float) -> Efficiencies:
    """Return the efficiencies of one run from useful times and its window, seconds.

    The database computes the parts of ideal-network runs (``experiments_split_by_twins``). Raise ValueError for a run
    without useful time.
    """
    most = max(useful_s, default=0.0)
    if most <= 0 or window_s <= 0:
        raise ValueError("no time outside of MPI was seen")
    return Efficiencies(sum(useful_s) / len(useful_s) / most, min(1.0, most / window_s))


@dataclass(frozen=True, slots=True)
class Counts:
    """Sums over ranks outside MPI: instructions, cycles, time on a CPU core."""

    instructions: float
    cycles: float
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Size:
    """One size of a study: medians of its runs."""

    ranks: int
    useful_s: float
    """Summed over ranks."""
    parallel: float
    counts: Counts | None = None


@dataclass(frozen=True, slots=True)
class Split:
    """Factors of the computation scalability, each against the smallest size.

    POP's frequency scalability is ``frequency`` x ``core``: it divides cycles by useful time, on a core or not.
    """

    instructions: float
    ipc: float
    frequency: float
    core: float


@dataclass(frozen=True, slots=True)
class Scaled:
    """A size against the smallest.

    ``computation`` is how the useful time grew, ``whole`` the product with the parallel efficiency.
    """

    ranks: int
    computation: float
    whole: float
    split: Split | None = None
    """None unless both sizes have counters."""


def scaled(sizes: Sequence[Size], *, weak: bool = False) -> list[Scaled]:
    """Return computation scalability and global efficiency by size, smallest first.

    In weak scaling the work grows with the ranks.
    """
    ordered = sorted(sizes, key=lambda size: size.ranks)
    rows = []
    for size in ordered:
        first = ordered[0]
        grown = size.ranks / first.ranks if weak else 1.0
        computation = first.useful_s * grown / size.useful_s if size.useful_s > 0 else float("nan")
        rows.append(Scaled(size.ranks, computation, computation * size.parallel, _split(first, size, grown)))
    return rows


def _split(first: Size, size: Size, grown: float) -> Split | None:
    before, here = first.counts, size.counts
    if before is None or here is None:
        return None
    return Split(
        before.instructions * grown / here.instructions,
        here.instructions / here.cycles * before.cycles / before.instructions,
        here.cycles / here.cpu_s * before.cpu_s / before.cycles,
        here.cpu_s / size.useful_s * first.useful_s / before.cpu_s,
    )
