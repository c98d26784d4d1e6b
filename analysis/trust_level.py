"""How far a capture is to be trusted, in one word."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class TrustLevel(StrEnum):
    """From best to worst."""

    GOOD = "good"
    ESTIMATED = "estimated"
    """What the cards joined was split again by rule: counts and means are those of the wire within the stated error."""
    DEGRADED = "degraded"
    UNUSABLE = "unusable"


FLAGGED: Final = (TrustLevel.DEGRADED, TrustLevel.UNUSABLE)
"""What keeps a trial's traffic out of statistics; its times count."""
_FROM_BEST: Final = ("", *TrustLevel)


def worst(*levels: str) -> str:
    """Return the worst of the levels; "", that of a trial without capture, says nothing. Raise ValueError for another word."""
    return max(levels, key=_FROM_BEST.index)
