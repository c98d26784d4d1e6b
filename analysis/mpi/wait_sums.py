"""Waiting time by pair of ranks and cause, while gathered and when whole. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

CAUSES: Final = (
    *("late_sender", "line_rate", "under_way", "retransmission", "closed_window", "receiver", "no_core", "unknown"),
)
LONG_WAIT_NS: Final = 50_000
UNKNOWN_RANK: Final = -1
"""Sender of a wait for an unknown rank."""
ALL_RANKS: Final = -2
"""Sender of the transfer of a collective after the last arrival."""


@dataclass(frozen=True, slots=True)
class PairWaits:
    """Waits of ``receiver`` for ``sender`` (or UNKNOWN_RANK, ALL_RANKS), by cause."""

    sender: int
    receiver: int
    waits: int
    seconds: tuple[float, ...]

    @property
    def whole_s(self) -> float:
        return sum(self.seconds)


@dataclass(frozen=True, slots=True)
class Waits:
    """Waits by pair, the longest first.

    ``unknown_s``: reasons of unexplained seconds; ``run_delay_known``: the kernel counts it.
    """

    pairs: tuple[PairWaits, ...]
    unknown_s: Mapping[str, float]
    run_delay_known: bool = True

    @property
    def whole_s(self) -> float:
        return sum(pair.whole_s for pair in self.pairs)

    def share(self, cause: str) -> float:
        """Return the share of all waiting time; 0 without waits."""
        return sum(pair.seconds[CAUSES.index(cause)] for pair in self.pairs) / self.whole_s if self.pairs else 0.0


class Sums:
    """Nanoseconds by pair and cause while they are gathered."""

    def __init__(self) -> None:
        self._pairs: dict[tuple[int, int], npt.NDArray[np.float64]] = {}
        self._waits: dict[tuple[int, int], int] = {}
        self._unknown: dict[str, float] = {}

    def add(self, sender: int, receiver: int, waits: int, by_cause: npt.NDArray[np.float64]) -> None:
        """Add ``waits`` waits with nanoseconds in the order of CAUSES."""
        pair = (sender, receiver)
        self._pairs[pair] = self._pairs.get(pair, np.zeros(len(CAUSES))) + by_cause
        self._waits[pair] = self._waits.get(pair, 0) + waits

    def why(self, reason: str, ns: float) -> None:
        """Add a reason of unexplained nanoseconds."""
        if ns > 0:
            self._unknown[reason] = self._unknown.get(reason, 0.0) + ns

    def unexplained(self, sender: int, receiver: int, waits: npt.NDArray[np.void], reason: str) -> None:
        """Add whole waits, of dtype CALL."""
        if len(waits):
            unknown_ns = float((waits["ended_ns"] - waits["began_ns"]).sum())
            self.add(sender, receiver, len(waits), of_causes(unknown=unknown_ns))
            self.why(reason, unknown_ns)

    def result(self) -> Waits:
        """Return the sums in seconds."""
        pairs = [PairWaits(*pair, self._waits[pair], tuple((ns / 1e9).tolist())) for pair, ns in self._pairs.items()]
        return Waits(
            tuple(sorted(pairs, key=lambda pair: -pair.whole_s)),
            {reason: ns / 1e9 for reason, ns in sorted(self._unknown.items(), key=lambda item: -item[1])},
        )


def of_causes(**nanoseconds: float) -> npt.NDArray[np.float64]:
    """Return nanoseconds in the order of CAUSES; missing causes are 0."""
    return np.array([nanoseconds.get(cause, 0.0) for cause in CAUSES])
