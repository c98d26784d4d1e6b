"""Speed-up, efficiency, serial fraction and cost against the smallest size."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from analysis.scaling.study import AnswerIntervals, Point, Study
from analysis.statistics import Interval, PooledIntervals, SampleSummary, summarise
from analysis.statistics.spread import if_bounded


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its interval; None if the repetitions do not give one."""

    value: float
    interval: Interval | None = None

    @property
    def low(self) -> float | None:
        return None if self.interval is None else self.interval.low

    @property
    def high(self) -> float | None:
        return None if self.interval is None else self.interval.high

    def through(self, change: Callable[[float], float]) -> Estimate:
        """Return the estimate of a monotone function of this one."""
        if self.interval is None:
            return Estimate(change(self.value))
        ends = [None if e is None else change(e) for e in (self.interval.low, self.interval.high)]
        if None not in ends and (ends[0] or 0.0) > (ends[1] or 0.0):
            ends.reverse()
        return Estimate(change(self.value), Interval(ends[0], ends[1], self.interval.level, self.interval.method))


@dataclass(frozen=True, slots=True)
class ScalingRow:
    """One size of a scaling study; ratios are to ``reference``, the smallest."""

    size: float
    ranks: int | None
    reference: float
    elapsed: SampleSummary
    speedup: Estimate
    """T(reference) / T(size); in weak scaling times the growth of the work (scaled speed-up)."""
    ideal: float
    """size / reference."""
    efficiency: Estimate
    """speedup / ideal."""
    serial_fraction: Estimate | None
    """Karp and Flatt 1990, with the reference as the unit; None for the reference itself and in weak scaling."""
    cost: Estimate
    """size x elapsed, or ranks x elapsed where the ranks are known: host- or core-seconds."""
    cost_unit: str


def scaling_table(study: Study) -> list[ScalingRow]:
    """Return rows by size, smallest first; empty without the time metric.

    Intervals are those of the answer; else made on logarithms with the scatter of all sizes together, so that two
    repetitions each suffice for them.
    """
    sized = study.sized(study.time_metric)
    if not sized:
        return []
    per_rank = all(point.ranks for _, point in sized)
    intervals = study.intervals or _Own(study, [point for _, point in sized])
    return [_row(study, size, point, sized[0], intervals, per_rank) for size, point in sized]


class _Own:
    """Intervals of a study's time without an answer about it."""

    def __init__(self, study: Study, points: Sequence[Point]) -> None:
        self._values = {id(point.parameters): point.array(study.time_metric) for point in points}
        self._pooled = PooledIntervals(list(self._values.values()))

    def value(self, parameters: Mapping[str, Any]) -> Interval | None:
        return self._pooled.value(self._values[id(parameters)])

    def ratio(self, over: Mapping[str, Any], under: Mapping[str, Any]) -> Interval | None:
        return self._pooled.ratio(self._values[id(over)], self._values[id(under)])


def _row(
    study: Study,
    size: float,
    point: Point,
    reference: tuple[float, Point],
    intervals: AnswerIntervals,
    per_rank: bool,
) -> ScalingRow:
    base_size, base = reference
    here, there = point.array(study.time_metric), base.array(study.time_metric)
    ideal = size / base_size
    is_reference = point is base
    interval = None if is_reference else if_bounded(intervals.ratio(base.parameters, point.parameters))
    ratio = Estimate(float(np.median(there) / np.median(here)), interval)
    speedup = ratio.through(lambda s: s * ideal) if study.kind == "weak" else ratio
    summary = replace(summarise(here.tolist()), interval=if_bounded(intervals.value(point.parameters)))
    units = float(point.ranks or 0) if per_rank else size
    return ScalingRow(
        size=size,
        ranks=point.ranks,
        reference=base_size,
        elapsed=summary,
        speedup=speedup,
        ideal=ideal,
        efficiency=speedup.through(lambda s: s / ideal),
        serial_fraction=None if is_reference or study.kind == "weak" else ratio.through(lambda s: karp_flatt(s, ideal)),
        cost=Estimate(summary.median, summary.interval).through(lambda t: units * t),
        cost_unit="core-seconds" if per_rank else f"{study.axis.removesuffix('s')}-seconds",
    )


def karp_flatt(speedup: float, processors: float) -> float:
    """Return the serial fraction (1/s - 1/p) / (1 - 1/p) of Karp and Flatt 1990.

    ``processors`` is the size relative to the one that the speed-up is against. A fraction that grows with the size points to
    overhead that grows, a constant one to work that is not parallel.
    """
    if processors == 1:
        raise ValueError("the serial fraction needs two sizes")
    return (1 / speedup - 1 / processors) / (1 - 1 / processors)
