"""Coverage of intervals."""

from __future__ import annotations

from analysis.statistics.summary import Interval


def holds(interval: Interval, value: float) -> bool:
    """Also where the data bound it on one side alone, or on none."""
    return (interval.low is None or interval.low <= value) and (interval.high is None or value <= interval.high)
