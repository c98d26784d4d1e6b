"""Readings of a study for all rules: medians by size, and measurable differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

from analysis.conclusions.wording import size_range
from analysis.scaling import (
    ModelChoice,
    Point,
    Study,
    TimeRow,
    fit_models,
    scaling_table,
    time_breakdown,
)
from analysis.scaling.breakdown import cpu_per_rank
from analysis.statistics import Interval, differs_anywhere, ratio_interval

ChoiceOf = Callable[[Study], ModelChoice | None]
"""Returns the models of a study's time; cached by the caller, as they dominate a diagnosis."""
_ALPHA: Final = 0.005
"""Per metric, so that the four that scaling rules look at make at most 2 false studies in 100 (Bonferroni)."""
_LEVEL: Final = 0.99
"""Level of intervals of two sizes: several pairs are compared."""
_PRINTED_DIFFERENCE: Final = 1.05
"""Ratio of two printed values that counts: rounding and a rerun could hide in less."""


@dataclass(frozen=True, slots=True)
class Observation:
    """One number behind a finding, in the unit of its metric."""

    label: str
    value: float
    unit: str
    metric: str = ""
    """Catalogue id; empty for a number computed from several."""
    size: float | None = None
    """Place on the axis; None for a number of the whole study."""
    interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class SizeEntry:
    """One size of one metric."""

    size: float
    point: Point
    median: float

    def same_rank(self, metric: str) -> float | None:
        """Return the rank that the metric names, if it is the same one in every trial."""
        ranks = set(self.point.values.get(metric, ()))
        return ranks.pop() if len(ranks) == 1 else None


class Reading:
    """A study as rules read it; costly values are cached."""

    def __init__(self, study: Study, choice_of: ChoiceOf = fit_models) -> None:
        self.study = study
        self._choice_of = choice_of
        self._moves: dict[str, bool] = {}

    @property
    def axis(self) -> str:
        return self.study.axis

    @property
    def printed(self) -> bool:
        return self.study.published

    @cached_property
    def points(self) -> list[tuple[float, Point]]:
        """Return all points with a number on the axis, by size, with or without trials."""
        sized = [p for p in self.study.points if isinstance(p.parameters.get(self.axis), int | float)]
        return sorted(((float(p.parameters[self.axis]), p) for p in sized), key=lambda pair: pair[0])

    @cached_property
    def times(self) -> list[SizeEntry]:
        """Return the study's time by size, smallest size first."""
        return self.series(self.study.time_metric)

    @cached_property
    def best(self) -> SizeEntry | None:
        """Return the size with the smallest median time."""
        return min(self.times, key=lambda entry: entry.median, default=None)

    @cached_property
    def breakdown(self) -> list[TimeRow]:
        return time_breakdown(self.study)

    @cached_property
    def choice(self) -> ModelChoice | None:
        return self._choice_of(self.study)

    def series(self, metric: str) -> list[SizeEntry]:
        return [SizeEntry(x, p, p.median(metric) or 0.0) for x, p in self.study.sized(metric)]

    def highest(self, metric: str) -> SizeEntry | None:
        return max(self.series(metric), key=lambda entry: entry.median, default=None)

    def lowest(self, metric: str) -> SizeEntry | None:
        return min(self.series(metric), key=lambda entry: entry.median, default=None)

    def evidence(self, label: str, metric: str, unit: str = "share") -> tuple[Observation, ...]:
        """Return the median of the metric at every size."""
        return tuple(Observation(label, entry.median, unit, metric, entry.size) for entry in self.series(metric))

    def time_evidence(self, entry: SizeEntry) -> Observation:
        """Return the median time at a size, with the interval of its repetitions."""
        row = next((r for r in scaling_table(self.study) if r.size == entry.size), None)
        interval = row.elapsed.interval if row else None
        return Observation("Elapsed time", entry.median, "s", self.study.time_metric, entry.size, interval)

    @cached_property
    def cpu(self) -> list[SizeEntry]:
        """Return CPU time per rank by size."""
        measured = [(x, p, cpu_per_rank(self.study, p)) for x, p in self.study.sized(self.study.time_metric)]
        return [SizeEntry(x, p, value) for x, p, value in measured if value]

    @property
    def sizes_differ(self) -> bool:
        """Return whether the points differ on the axis."""
        return len({size for size, _ in self.points}) > 1

    def at(self, *points: Point) -> str:
        """Return the place in words: " at 4 and 8 hosts", " at 3 of 12 points", or ""."""
        if self.sizes_differ:
            return self.at_sizes([float(p.parameters[self.axis]) for p in points])
        if len(points) == len(self.points) or self.study.describe is None:
            return ""
        names = [self.study.describe(p) for p in points]
        return f" at {' and '.join(names)}" if len(names) < 3 else f" at {len(names)} of {len(self.points)} points"

    def at_sizes(self, sizes: Sequence[float]) -> str:
        """Return sizes in words: " at 4 and 8 hosts"; "" if all points have one size."""
        return f" at {size_range(sorted(set(sizes)), self.axis)}" if self.sizes_differ else ""

    def moves(self, metric: str) -> bool:
        """Return whether the metric differs between sizes at all."""
        if metric not in self._moves:
            self._moves[metric] = self._differs(metric)
        return self._moves[metric]

    def _differs(self, metric: str) -> bool:
        places = self.series(metric)
        if len({p.size for p in places}) < 2:
            return False
        if not self.study.may_claim(*(p.point for p in places), metric=metric):
            return False
        if self.printed:
            return _ratio(max(p.median for p in places), min(p.median for p in places)) > _PRINTED_DIFFERENCE
        return differs_anywhere([p.point.values[metric] for p in places]) < _ALPHA

    def ratio(self, metric: str, over: SizeEntry, under: SizeEntry) -> Interval | None:
        """Return the interval of a ratio of two sizes; that of the answer if it has one."""
        if self.study.intervals is not None and metric == self.study.time_metric:
            return self.study.intervals.ratio(over.point.parameters, under.point.parameters)
        return (
            ratio_interval(over.point.values[metric], under.point.values[metric], level=_LEVEL)
            if (metric in over.point.values and metric in under.point.values)
            else None
        )

    def larger(self, metric: str, over: SizeEntry, under: SizeEntry) -> bool:
        """Return whether the metric is measurably larger at ``over``."""
        interval = self.ratio(metric, over, under)
        if interval is not None:
            return interval.low is not None and interval.low > 1
        return self.printed and _ratio(over.median, under.median) > _PRINTED_DIFFERENCE

    def strength(self, *, doubtful: bool = False) -> Literal["strong", "moderate", "printed"]:
        """Return strength of a claim that a rule has checked."""
        return "printed" if self.printed else "moderate" if doubtful else "strong"

    def strength_at(self, entry: SizeEntry, metric: str) -> Literal["strong", "moderate", "printed"]:
        """Return the strength of a claim about one size: moderate with few repetitions."""
        return self.strength(doubtful=not self.study.may_claim(entry.point, metric=metric))


def _ratio(over: float, under: float) -> float:
    return over / under if under > 0 else float("inf") if over > 0 else 1.0
