"""Outlying trials, far outside the scatter of all: one in 20 on shared machines.

Rosner's generalised test of many outliers (1983), on the residuals of a linear model with one mean per point: the value that adds most
to the pooled scatter is removed, again and again, and the last removal that is significant decides. A single step would miss two
outliers, as each of them widens the scatter that the other is judged by.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from heapq import heapify, heapreplace
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy import special  # stdtr is t.cdf, without its checks

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
    sent = [np.asarray(group, dtype=np.float64).tobytes() for group in groups]
    order = sorted(range(len(sent)), key=sent.__getitem__)
    masks: list[Mask] = [np.zeros(0, dtype=bool)] * len(sent)
    for index, mask in zip(order, _masks(tuple(sent[index] for index in order)), strict=True):
        masks[index] = mask
    return masks


@lru_cache(maxsize=16)
def _masks(sent: tuple[bytes, ...]) -> tuple[Mask, ...]:
    """Return the outliers of groups of doubles.

    Cached: each slice of an experiment needs those of all.
    """
    groups = [np.frombuffer(group) for group in sent]
    masks: list[Mask] = [np.zeros(len(group), dtype=bool) for group in groups]
    repeated = [index for index, group in enumerate(groups) if len(group) > 1]
    sizes = [len(groups[index]) for index in repeated]
    if repeated:
        is_outlier = np.zeros(sum(sizes), dtype=bool)
        is_outlier[_farthest(np.log(np.concatenate([groups[index] for index in repeated])), np.array(sizes))] = True
        for index, mask in zip(repeated, np.split(is_outlier, np.cumsum(sizes)[:-1]), strict=True):
            masks[index] = mask
    return tuple(masks)


def _farthest(logs: np.ndarray, sizes: np.ndarray) -> list[int]:
    """Return the positions of the outliers.

    ``sizes`` are the numbers of values of the points, in order.
    """
    starts = np.cumsum(sizes) - sizes
    means = np.add.reduceat(logs, starts) / sizes
    total, freedom = float(((logs - np.repeat(means, sizes)) ** 2).sum()), len(logs) - len(sizes)
    least = max(SMALLEST_SPREAD**2, _STEADIEST * total / max(freedom, 1))
    points = [_Remaining(part, int(first)) for part, first in zip(np.split(logs, starts[1:]), starts, strict=True)]
    worst = [(*point.worst(), number) for number, point in enumerate(points)]
    heapify(worst)
    # both values of a pair have one residual: they are one candidate
    candidates = float(sum(1 if size == 2 else size for size in sizes.tolist()))
    removed: list[int] = []
    outliers = 0
    while worst and len(removed) < _MOST * len(logs) and freedom > _LEAST_FREEDOM:
        below, index, number = worst[0]
        if below == 0:  # values that repeat exactly have no outlier
            break
        point = points[number]
        rest = max(total + below, (freedom - 1) * least)
        t = (-below / (rest / (freedom - 1))) ** 0.5
        removed.append(index)
        if 2 * special.stdtr(freedom - 1, -t) * candidates < _FALSE:
            outliers = len(removed)
        candidates -= 2 if point.n == 3 else 1
        point.remove(index)
        heapreplace(worst, (*point.worst(), number))
        total, freedom = rest, freedom - 1
    return removed[:outliers]


class _Remaining:
    """Values of one point that are not removed.

    The farthest is the smallest or the largest.
    """

    def __init__(self, logs: np.ndarray, first: int) -> None:
        order = np.argsort(logs, kind="stable")
        self._values: deque[tuple[float, int]] = deque(zip(logs[order].tolist(), (first + order).tolist(), strict=True))
        self._mean, self.n = float(logs.mean()), len(logs)

    def worst(self) -> tuple[float, int]:
        """Return what the farthest value adds to the scatter, negative, and its position."""
        if self.n < 2:
            return 0.0, self._values[0][1]
        low, high = self._values[0], self._values[-1]
        below, above = (low[0] - self._mean) ** 2, (high[0] - self._mean) ** 2
        square, index = max((below, -low[1]), (above, -high[1]))
        return -square * self.n / (self.n - 1), -index

    def remove(self, index: int) -> None:
        """Remove the smallest or the largest value, whichever has this position."""
        value, _ = self._values.popleft() if self._values[0][1] == index else self._values.pop()
        self._mean = (self._mean * self.n - value) / (self.n - 1)
        self.n -= 1
