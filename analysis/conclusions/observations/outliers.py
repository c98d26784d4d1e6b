"""Outlying trials, far outside the scatter of all: one in 20 on shared machines.

Rosner's generalised test of many outliers (1983), on the residuals of a linear model with one mean per point: the value that adds most
to the pooled scatter is removed, again and again, and the last removal that is significant decides. A single step would miss two
outliers, as each of them widens the scatter that the other is judged by.
"""

from __future__ import annotations

from collections.abc import Sequence
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


def find_outliers(groups: Sequence[Sequence[float]]) -> list[Mask]:
    """Return the outliers of each group on the logarithm; values are positive.

    Of two values one is marked and says that the two disagree: which of them is the outlier is not known.
    """
    sizes = np.array([len(group) for group in groups], dtype=np.int64)
    masks = np.split(np.zeros(int(sizes.sum()), dtype=bool), np.cumsum(sizes)[:-1])
    repeated = [i for i, group in enumerate(groups) if len(group) > 1]
    if not repeated:
        return masks
    logs = np.concatenate([np.log(np.asarray(groups[i], dtype=np.float64)) for i in repeated])
    owner = np.repeat(np.arange(len(repeated)), sizes[repeated])
    is_outlier = np.zeros(len(logs), dtype=bool)
    is_outlier[_farthest(logs, owner)] = True
    for i, mask in zip(repeated, np.split(is_outlier, np.cumsum(sizes[repeated])[:-1]), strict=True):
        masks[i] = mask
    return masks


def _farthest(logs: np.ndarray, owner: np.ndarray) -> list[int]:
    """Return the positions of the outliers; ``owner`` is the point of each logarithm."""
    n = np.bincount(owner).astype(np.float64)
    mean = np.bincount(owner, logs) / n
    total, freedom = float(((logs - mean[owner]) ** 2).sum()), len(logs) - len(n)
    least = max(SMALLEST_SPREAD**2, _STEADIEST * total / max(freedom, 1))
    removed: list[int] = []
    outliers = 0
    is_in = np.ones(len(logs), dtype=bool)
    while len(removed) < _MOST * len(logs) and freedom > _LEAST_FREEDOM:
        size = n[owner]
        shares = np.where(is_in & (size > 1), (logs - mean[owner]) ** 2 * size / np.maximum(size - 1, 1), 0.0)
        worst = int(shares.argmax())
        if shares[worst] == 0:  # values that repeat exactly have no outlier
            break
        rest = max(total - float(shares[worst]), (freedom - 1) * least)
        t = float(np.sqrt(shares[worst] / (rest / (freedom - 1))))
        # both values of a pair have one residual: they are one candidate
        candidates = float(np.where(size == 2, 0.5, 1.0)[is_in & (size > 1)].sum())
        point = owner[worst]
        removed.append(worst)
        if 2 * special.stdtr(freedom - 1, -t) * candidates < _FALSE:
            outliers = len(removed)
        is_in[worst] = False
        mean[point] = (mean[point] * n[point] - logs[worst]) / (n[point] - 1)
        n[point] -= 1
        total, freedom = rest, freedom - 1
    return removed[:outliers]
