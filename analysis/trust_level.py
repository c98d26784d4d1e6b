"""Trust levels of captures."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class TrustLevel(StrEnum):
    """From best to worst."""

    GOOD = "good"
    ESTIMATED = "estimated"
    """Segments joined by offloads were split by rule: counts and means are those of the wire within the stated error."""
    DEGRADED = "degraded"
    UNUSABLE = "unusable"


FLAGGED: Final = (TrustLevel.DEGRADED, TrustLevel.UNUSABLE)
"""Levels that exclude the traffic of a trial from statistics; its times count."""
_FROM_BEST: Final = ("", *TrustLevel)


def worst(*levels: str) -> str:
    """Return the worst level, ignoring "" (no capture)."""
    return max(levels, key=_FROM_BEST.index)
