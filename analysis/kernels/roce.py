"""Packet numbers of InfiniBand's reliable transport: which were sent before."""

from __future__ import annotations

from typing import Any, Final

from analysis.kernels import jit
from analysis.kernels.raw import signed

UNKNOWN: Final = -1
_HALF = 1 << 23
_MASK = (1 << 24) - 1


@jit
def count_repeated(stream: Any, number: Any, highest: Any, repeated: Any, again: Any) -> None:
    """Count packets whose ``number`` (N,) is not above the ``highest`` (S,) of their ``stream`` (N,) into ``repeated`` (S,).

    ``again`` (N,) says which packets those are.
    """
    for i in range(len(stream)):
        of, psn = stream[i], signed(number[i])
        again[i] = False
        ahead = ((psn - highest[of] + _HALF) & _MASK) - _HALF
        if highest[of] == UNKNOWN or ahead > 0:
            highest[of] = psn
        else:
            repeated[of] += 1
            again[i] = True
