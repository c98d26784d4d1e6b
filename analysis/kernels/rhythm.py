"""The autocorrelation of packets per bin: smoothed over neighbouring lags, and its strongest peak.

Whole arrays per step, as numpy has them, took seven times as long: each was read and written again for every condition.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from analysis.kernels import jit

Float64 = npt.NDArray[np.float64]


@jit
def smooth(r: Float64, width: int, sums: Float64, out: Float64) -> None:
    """``out`` (N,) becomes ``r`` (N,), continued to both sides, under a triangle of half width ``width`` that is 1 in all.

    ``sums`` has room for N + 2 width + 1 running sums.
    """
    lags, last = len(r), r[-1]
    total = 0.0
    sums[0] = 0.0
    for k in range(lags + 2 * width):
        total += r[width - k] if k < width else r[k - width] if k < width + lags else last  # r(-k) = r(k)
        sums[k + 1] = total
    total = 0.0
    behind = 0.0  # the running sum that the window before has reached
    for k in range(lags + width + 1):
        total += sums[k + width] - sums[k]
        sums[k] = behind
        behind = total
    sums[lags + width + 1] = behind
    for k in range(lags):
        out[k] = sums[k + 1 + width] - sums[k + 1]
    if out[0] > 0:
        scale = out[0]
        for k in range(lags):
            out[k] /= scale
    else:
        out[:] = 0.0


@jit
def strongest_peak(r: Float64, threshold: float, width: int, share: float) -> int:
    """The first lag behind ``width`` with a local maximum of at least ``share`` of the highest; -1 where there is none.

    Only those count that rise above ``threshold``, and by as much over the lowest r before them.
    """
    highest = -np.inf
    for wanted in range(2):
        lowest = r[0]
        for k in range(1, len(r) - 1):
            lowest = min(lowest, r[k])
            if r[k] <= threshold or r[k] - lowest <= threshold or k <= width:
                continue
            if r[k] > r[k - 1] and r[k] >= r[k + 1]:
                if wanted and r[k] >= share * highest:
                    return k
                highest = max(highest, r[k])
    return -1
