"""Retransmissions by the packet numbers of InfiniBand's reliable transport."""

from __future__ import annotations

from typing import Any, Final

from analysis.kernels import jit
from analysis.kernels.raw import signed

UNKNOWN: Final = -1
_HALF = 1 << 23
_MASK = (1 << 24) - 1


@jit
def count_repeated(stream: Any, number: Any, highest: Any, repeated: Any, again: Any) -> None:
    """Count packets whose ``number`` is not above the ``highest`` of their ``stream``.

    ``repeated`` (S,) gets the counts, ``again`` (N,) marks the packets.
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
