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
    """Every gap once: ``histogram`` counts the positive ones and ``signs`` all, by ``kernel.add_gaps``.

    ``pieces`` hold in ns, in any order, those that no group of gaps in multiples of ``unit_ns`` tells exactly.
    """

    def __init__(
        self,
        pieces: Sequence[npt.NDArray[Any]],
        histogram: npt.NDArray[np.int64],
        signs: npt.NDArray[np.int64],
        unit_ns: int,
    ) -> None:
        groups = np.flatnonzero(histogram != 0)
        self._begins = np.concatenate([[0], np.cumsum(histogram[groups])])
        firsts = np.flatnonzero((np.diff(self._begins[:-1] // _CELL, prepend=-1) > 0) | (histogram[groups] >= _CELL))
        edges = np.append(groups[firsts], groups[-1:] + 1)
        self._cells = np.append(firsts, len(groups))
        self._edges, self._ranks = np.ceil(kernel.bin_edges(edges)), self._begins[self._cells]
        mixed = int(np.searchsorted(groups, kernel.bins_of(np.array([kernel.alone_below(unit_ns)]))[0]))
        self._alone = kernel.alone_in(groups[:mixed], unit_ns)
        self._told = int(self._begins[mixed])
        self._others = np.empty(int(self._begins[-1]) - self._told, np.result_type(np.int32, *pieces))
        places = np.empty(len(histogram), np.int64)
        places[groups[mixed:]] = self._begins[mixed:-1] - self._told
        for piece in pieces:
            kernel.place_gaps(piece, places, self._others)
        self._pieces = pieces
        self._zeros, self._negatives = int(signs[kernel.ZERO]), int(signs[kernel.NEGATIVE])
        self._ties: dict[int, _Ties] = {}

    def __len__(self) -> int:
        return self._negatives + self._zeros + int(self._begins[-1])

    def quantile(self, share: float) -> float:
        """Hyndman-Fan type 7, in ns."""
        place = (len(self) - 1) * share
        low = math.floor(place)
        below = self._at(low)
        return below if place == low else below + (place - low) * (self._at(low + 1) - below)

    def positive(self) -> npt.NDArray[Any]:
        """All gaps above 0, ascending."""
        alone = np.repeat(self._alone, np.diff(self._begins[: len(self._alone) + 1]))
        return np.concatenate([alone, np.sort(self._others)])

    def _at(self, rank: int) -> float:
        if rank < self._negatives:
            negative = np.concatenate([piece[piece < 0] for piece in self._pieces])
            return float(np.partition(negative, rank)[rank])
        rank -= self._negatives + self._zeros
        if rank < 0:
            return 0.0
        group = int(np.searchsorted(self._begins, rank, side="right")) - 1
        if group < len(self._alone):
            return float(self._alone[group])
        first, some = self._mixed(group, group + 1)
        return float(some[0] if _alike(some) else np.partition(some, rank - first)[rank - first])

    def distance(self, cdf: Callable[[Values], Values], scale: float = 1.0) -> float:
        """Kolmogorov-Smirnov distance of ``scale`` times the positive gaps from ``cdf``, exactly, with few evaluations of it.

        Of gaps from a to below b, with i before them and j up to their end, none is further off than max(F(b) - i/n, j/n - F(a));
        only those cells that could hold more than the best found are looked at value by value.
        """
        n, ranks = int(self._begins[-1]), self._ranks
        model = cdf(self._edges * scale)
        bound = np.maximum(model[1:] - ranks[:-1] / n, ranks[1:] / n - model[:-1])
        surely = float(np.maximum(model - ranks / n, ranks / n - model).max()) * (1 - 1e-9)
        best = 0.0
        for cell in np.argsort(-bound).tolist():
            if bound[cell] <= max(best, surely):
                break
            values, first, behind = self._ties_of(cell)
            inside = cdf(values * scale)
            best = max(best, float(np.maximum(inside - first / n, behind / n - inside).max()))
        return best

    def _mixed(self, first: int, behind: int) -> tuple[int, npt.NDArray[Any]]:
        """How many gaps are before groups ``first`` to ``behind``, none of which tells its gaps exactly; those in them, in any order."""
        begin, end = int(self._begins[first]), int(self._begins[behind])
        return begin, self._others[begin - self._told : end - self._told]

    def _ties_of(self, cell: int) -> _Ties:
        """The different gaps of a cell, ascending; for each the rank of its first, and that behind its last."""
        if cell not in self._ties:
            first, behind = int(self._cells[cell]), int(self._cells[cell + 1])
            mixed = min(max(first, len(self._alone)), behind)
            values, ranks = self._alone[first:mixed], self._begins[first : mixed + 1]
            if mixed < behind:
                begin, some = self._mixed(mixed, behind)
                ordered = some[:1] if _alike(some) else np.sort(some)
                ends = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
                values = np.append(values, ordered[np.append(0, ends)])
                ranks = np.concatenate([ranks, ends + begin, [begin + len(some)]])
            self._ties[cell] = values.astype(np.float64), ranks[:-1], ranks[1:]
        return self._ties[cell]


def _alike(gaps: npt.NDArray[Any]) -> bool:
    """As in large groups, where the clock ticks in microseconds."""
    return bool(gaps.min() == gaps.max())
