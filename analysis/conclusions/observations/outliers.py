"""Outlying trials, far outside the scatter of all: one in 20 on shared machines.

Rosner's generalised test of many outliers (1983), on the residuals of a linear model with one mean per point: the value that adds most
to the pooled scatter is removed, again and again, and the last removal that is significant decides. A single step would miss two
outliers, as each of them widens the scatter that the other is judged by.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
import scipy  # special is loaded when first used; stdtr is t.cdf, without its checks

from analysis.statistics.spread import SMALLEST_SPREAD

Mask = npt.NDArray[np.bool_]

_FALSE: Final = 0.01
"""Probability that the trials of an experiment without outliers hold one."""
_MOST: Final = 0.2
"""Share of the values that can be outliers: with more, they are no longer exceptions."""
_LEAST_FREEDOM: Final = 2
_STEADIEST: Final = 0.01
"""Least variance of the other trials as a share of that of all: values that repeat exactly by rounding make no outlier of the next."""


def find_outliers(groups: Sequence[Sequence[float] | np.ndarray]) -> list[Mask]:
    """Return the outliers of each group on the logarithm; values are positive.

    Of two values one is marked and says that the two disagree: which of them is the outlier is not known.
    """
    masks: list[Mask] = [np.zeros(len(group), dtype=bool) for group in groups]
    for index, mask in outlying(groups).items():
        masks[index] = mask
    return masks


def outlying(groups: Sequence[Sequence[float] | np.ndarray]) -> dict[int, Mask]:
    """Return the outliers of the groups that have any, by the position of the group."""
    sent = [as_bytes(group) for group in groups]
    order = sorted(range(len(sent)), key=sent.__getitem__)
    return {order[index]: mask for index, mask in _outlying(tuple(sent[index] for index in order)).items()}


def as_bytes(values: Sequence[float] | np.ndarray) -> bytes:
    """Return values as doubles, which can be the key of a cache."""
    if isinstance(values, array) and values.typecode == "d":
        return values.tobytes()  # a fifth of the time
    return np.asarray(values, dtype=np.float64).tobytes()


@lru_cache(maxsize=16)
def _outlying(sent: tuple[bytes, ...]) -> dict[int, Mask]:
    """Return the outliers of groups of doubles.

    Cached: each slice of an experiment needs those of all.
    """
    sizes = np.array([len(group) for group in sent]) // np.dtype(np.float64).itemsize
    repeated = np.flatnonzero(sizes > 1)
    if not len(repeated):
        return {}
    logs, ends = np.log(np.frombuffer(b"".join(sent[index] for index in repeated))), np.cumsum(sizes[repeated])
    masks: dict[int, Mask] = {}
    for position in _farthest(logs, sizes[repeated]).tolist():
        point = int(np.searchsorted(ends, position, side="right"))
        index = int(repeated[point])
        mask = masks.setdefault(index, np.zeros(sizes[index], dtype=bool))
        mask[position - ends[point] + sizes[index]] = True
    return masks


def _farthest(logs: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return the positions of the outliers.

    ``sizes`` are the numbers of values of the points, in order.
    """
    starts = np.cumsum(sizes) - sizes
    means = np.add.reduceat(logs, starts) / sizes
    total, freedom = float(((logs - np.repeat(means, sizes)) ** 2).sum()), len(logs) - len(sizes)
    least = max(SMALLEST_SPREAD**2, _STEADIEST * total / max(freedom, 1))
    most = min(int(np.ceil(_MOST * len(logs))), freedom - _LEAST_FREEDOM)
    removals = _Removals.of(logs, sizes, means, most) if most > 0 else None
    if removals is None or not len(removals.squares):
        return np.zeros(0, dtype=np.int64)
    others = freedom - 1 - np.arange(len(removals.squares))  # degrees of freedom after each removal
    sums = np.cumsum(np.r_[total, -removals.squares])[1:]
    sums += np.maximum.accumulate(np.maximum(least * others - sums, 0.0))  # never below the least scatter
    t = np.sqrt(removals.squares / (sums / others))
    # both values of a pair have one residual: they are one candidate
    candidates = np.where(sizes == 2, 1, sizes).sum() - np.cumsum(np.r_[0, np.where(removals.sizes == 3, 2, 1)])[:-1]
    significant = np.flatnonzero(2 * scipy.special.stdtr(others, -t) * candidates < _FALSE)
    return removals.positions[: significant.max(initial=-1) + 1]


@dataclass(frozen=True, slots=True)
class _Removals:
    """Removals of the value that adds most to the scatter, again and again."""

    positions: np.ndarray
    squares: np.ndarray
    """Contributions of the values to the scatter."""
    sizes: np.ndarray
    """Numbers of values of each value's point, itself included."""

    @classmethod
    def of(cls, logs: np.ndarray, sizes: np.ndarray, means: np.ndarray, most: int) -> _Removals:
        """Return the first ``most`` removals; values that repeat exactly are not removed.

        The removals of a point do not depend on other points: one step removes a value of every point, then all are merged.
        """
        order = np.lexsort((logs, np.repeat(np.arange(len(sizes)), sizes)))
        values = logs[order]
        low = np.cumsum(sizes) - sizes  # positions of each point's smallest and largest value that remain
        high, n = low + sizes - 1, sizes
        rank, position = np.full(len(sizes), -np.inf), np.full(len(sizes), -1)
        steps: list[tuple[np.ndarray, ...]] = []
        best = np.zeros(0)
        while len(n):
            below, above = (values[low] - means) ** 2, (values[high] - means) ** 2
            is_low = (below > above) | ((below == above) & (order[low] < order[high]))
            removed = np.where(is_low, low, high)
            squares, positions = np.where(is_low, below, above) * n / (n - 1), order[removed]
            # A value that adds more than an earlier one of its point follows that one directly.
            is_next = (-squares > rank) | ((-squares == rank) & (positions > position))
            rank, position = np.where(is_next, -squares, rank), np.where(is_next, positions, position)
            steps.append((positions, squares, n, rank, position, np.full(len(n), len(steps))))
            best = np.r_[best, rank]
            if len(best) > most:
                best = np.partition(best, most - 1)[:most]
            remains = (n > 2) & (rank <= (best.max() if len(best) == most else np.inf))
            means = ((means * n - values[removed]) / (n - 1))[remains]
            n, low, high = (n - 1)[remains], (low + is_low)[remains], (high - ~is_low)[remains]
            rank, position = rank[remains], position[remains]
        positions, squares, counts, *keys = (np.concatenate(column) for column in zip(*steps, strict=True))
        merged = np.lexsort(keys[::-1])[:most]
        merged = merged[: np.argmax(np.r_[squares[merged], 0.0] == 0)]
        return cls(positions[merged], squares[merged], counts[merged])
