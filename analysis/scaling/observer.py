"""Capture overhead: trials against control runs without capture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from analysis.statistics import ratio_interval
from analysis.statistics.spread import if_bounded


@dataclass(frozen=True, slots=True)
class ObserverEffect:
    """Medians in seconds; ``relative`` is with / without - 1, interval or None."""

    with_s: float
    without_s: float
    controls: int
    relative: float
    low: float | None
    high: float | None
    within_scatter: bool
    """The median without capture is between the extremes with it."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def observer_effect(captured: Sequence[float], control: Sequence[float]) -> ObserverEffect:
    """Compare times with capture with those without; both hold at least one."""
    interval = if_bounded(ratio_interval(captured, control)) if min(len(captured), len(control)) > 1 else None
    return ObserverEffect(
        with_s=median(captured),
        without_s=median(control),
        controls=len(control),
        relative=median(captured) / median(control) - 1,
        low=None if interval is None or interval.low is None else interval.low - 1,
        high=None if interval is None or interval.high is None else interval.high - 1,
        within_scatter=min(captured) <= median(control) <= max(captured),
    )
