"""Gaps in order of size, as far as somebody asks: grouped at once, and sorted only within the groups that are looked into.

Three quantiles and five distances from distributions need a few hundred of 300 000 gaps; sorting all of them by digits took six
times as long.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from analysis.kernels import gaps as kernel

Values = npt.NDArray[np.float64]
_CELL: Final = 256
"""Gaps of successive groups that are judged together, at least: the distribution is evaluated once for them."""
_Ties = tuple[Values, npt.NDArray[np.int64], npt.NDArray[np.int64]]


class GapOrder:
    """Every gap once: ``pieces`` hold them in ns in any order, ``histogram`` counts the positive ones by ``kernel.add_gaps``."""

    def __init__(self, pieces: Sequence[npt.NDArray[Any]], histogram: npt.NDArray[np.int64], zeros: int) -> None:
        groups = np.flatnonzero(histogram != 0)
        self._begins = np.concatenate([[0], np.cumsum(histogram[groups])])
        firsts = np.flatnonzero((np.diff(self._begins[:-1] // _CELL, prepend=-1) > 0) | (histogram[groups] >= _CELL))
        edges = np.append(groups[firsts], groups[-1:] + 1)
        self._edges, self._ranks = np.ceil(kernel.bin_edges(edges)), np.append(self._begins[firsts], self._begins[-1])
        self._positive = np.empty(int(self._begins[-1]), np.result_type(np.int32, *pieces))
        places = np.empty(len(histogram), np.int64)
        places[groups] = self._begins[:-1]
        for piece in pieces:
            kernel.place_gaps(piece, places, self._positive)
        self._pieces, self._zeros = pieces, zeros
        self._negatives = sum(map(len, pieces)) - zeros - len(self._positive)
        self._ties: dict[int, _Ties] = {}

    def __len__(self) -> int:
        return self._negatives + self._zeros + len(self._positive)

    def quantile(self, share: float) -> float:
        """Hyndman-Fan type 7, in ns."""
        place = (len(self) - 1) * share
        low = math.floor(place)
        below = self._at(low)
        return below if place == low else below + (place - low) * (self._at(low + 1) - below)

    def positive(self) -> npt.NDArray[Any]:
        """All gaps above 0, ascending."""
        return np.sort(self._positive)

    def _at(self, rank: int) -> float:
        if rank < self._negatives:
            negative = np.concatenate([piece[piece < 0] for piece in self._pieces])
            return float(np.partition(negative, rank)[rank])
        rank -= self._negatives + self._zeros
        if rank < 0:
            return 0.0
        group = int(np.searchsorted(self._begins, rank, side="right")) - 1
        first, behind = self._begins[group : group + 2].tolist()
        some = self._positive[first:behind]
        return float(some[0] if _alike(some) else np.partition(some, rank - first)[rank - first])

    def distance(self, cdf: Callable[[Values], Values], scale: float = 1.0) -> float:
        """Kolmogorov-Smirnov distance of ``scale`` times the positive gaps from ``cdf``, exactly, with few evaluations of it.

        Of gaps from a to below b, with i before them and j up to their end, none is further off than max(F(b) - i/n, j/n - F(a));
        only those cells that could hold more than the best found are looked at value by value.
        """
        n, ranks = len(self._positive), self._ranks
        model = cdf(self._edges * scale)
        bound = np.maximum(model[1:] - ranks[:-1] / n, ranks[1:] / n - model[:-1])
        surely = float(np.maximum(model - ranks / n, ranks / n - model).max()) * (1 - 1e-9)
        best = 0.0
        for cell in np.argsort(-bound).tolist():
            if bound[cell] <= max(best, surely):
                break
            values, first, behind = self._ties_of(cell, int(ranks[cell]), int(ranks[cell + 1]))
            inside = cdf(values * scale)
            best = max(best, float(np.maximum(inside - first / n, behind / n - inside).max()))
        return best

    def _ties_of(self, cell: int, first: int, behind: int) -> _Ties:
        """Different gaps with ranks ``first`` to ``behind``, ascending; for each the rank of its first, and that behind its last."""
        if cell not in self._ties:
            some = self._positive[first:behind]
            ordered = some[:1] if _alike(some) else np.sort(some)
            ends = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
            ranks = np.concatenate([[first], ends + first, [behind]])
            self._ties[cell] = ordered[ranks[:-1] - first].astype(np.float64), ranks[:-1], ranks[1:]
        return self._ties[cell]


def _alike(gaps: npt.NDArray[Any]) -> bool:
    """As in large groups, where the clock ticks in microseconds."""
    return bool(gaps.min() == gaps.max())
