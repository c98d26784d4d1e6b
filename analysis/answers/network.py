"""What does the program need from the network? Time per millisecond of delay, factor of loss and of rate, and which matters most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import exp, log
from typing import Any, Final

import numpy as np
from scipy import stats

from analysis.answers.answer import Answer, Cause, Figure, Strength
from analysis.answers.asked import Asked, Factor
from analysis.answers.scatter import Claims
from analysis.answers.wording import factor_words, level, place
from analysis.findings.wording import number, percent, quantity
from analysis.scaling import Point
from analysis.statistics import Interval

DELAY: Final = "link.delay"
LOSS: Final = "link.loss"
_WORTH_NAMING: Final = 1.05
"""A factor that changes the deciding metric by less is said to make no difference."""


@dataclass(frozen=True, slots=True)
class Change:
    """One network factor over its whole range, all others kept: how many times worse its costliest level is than its cheapest."""

    factor: Factor
    cheapest: Point
    costliest: Point
    ratio: float
    interval: Interval | None
    clear: bool


@dataclass(frozen=True, slots=True)
class Slope:
    """Time per unit of delay, at the other factors' ``where``; ``interval`` None without repetitions."""

    per_unit: float
    interval: Interval | None
    where: Mapping[str, Any]


class Grid:
    """The measured points by their parameters, with simultaneous claims."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.points = asked.measured()
        groups = [asked.values(p) for p in self.points]
        self.claims = Claims(groups, printed=asked.published, prior=asked.prior)

    def index(self, point: Point) -> int:
        return self.points.index(point)

    def worse(self, i: int, j: int) -> tuple[float, Interval | None, bool]:
        """(how many times worse i is than j, its interval, whether measurably so)."""
        a, b = (j, i) if self.asked.deciding.higher_is_better else (i, j)
        return (
            exp(self.claims.cells[a].mean - self.claims.cells[b].mean),
            self.claims.ratio(a, b),
            self.claims.larger(a, b),
        )

    def typical(self, point: Point) -> float:
        return exp(self.claims.cells[self.index(point)].mean)

    def along(self, factor: Factor, points: Sequence[Point] | None = None) -> list[list[Point]]:
        """Groups of points that differ in this factor alone, each by its level; groups of one are left out."""
        names = [f.name for f in self.asked.factors if f.name != factor.name]

        def key(point: Point) -> str:
            return repr([point.parameters.get(name) for name in names])

        chosen = sorted(points or self.points, key=lambda p: (key(p), _number(p.parameters.get(factor.name))))
        return [members for _, each in groupby(chosen, key=key) if len(members := list(each)) > 1]


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def answer_network(asked: Asked) -> Answer:
    """The answer of a sweep over properties of the network, for every level of the other factors."""
    grid = Grid(asked)
    network = asked.of_role("network")
    others = [f for f in asked.factors if f.role != "network"]
    slices = _slices(grid, others)
    if not slices or len(grid.points) < 2:
        return Answer("network", "A second setting of the network has to finish before its effect can be told.", "open")
    sentences, figures, causes = [], [], []
    unsure = False
    for part in slices:
        changes = _changes(grid, network, part)
        slopes = _slopes(grid, part, network)
        figures += _figures(changes, slopes)
        causes += _causes(grid, others, part, changes, slopes)
        sentences.append(_sentence(grid, others, part, changes, slopes))
        unsure |= not any(c.clear for c in changes)
    strength: Strength = "printed" if asked.published else "firm" if grid.claims.scatter is not None else "open"
    if strength == "firm" and grid.claims.scatter is not None and grid.claims.scatter.source != "repetitions":
        strength = "moderate"
    if unsure and all(not c.clear for part in slices for c in _changes(grid, network, part)):
        return _no_effect(asked, grid, network)
    return Answer(
        "network", " ".join(sentences), strength, tuple(figures), tuple(causes[:5]), None, grid.claims.scatter
    )


def _slices(grid: Grid, others: Sequence[Factor]) -> list[list[Point]]:
    """Points by the levels of the other factors, in ascending order; single points are left out."""

    def key(point: Point) -> tuple[Any, ...]:
        return tuple((_number(v), str(v)) for f in others for v in [point.parameters.get(f.name)])

    ordered = sorted(grid.points, key=key)
    return [members for _, each in groupby(ordered, key=key) if len(members := list(each)) > 1]


def _changes(grid: Grid, network: Sequence[Factor], part: Sequence[Point]) -> list[Change]:
    """The effect of every factor alone, where the other network factors are mildest; the largest effect first."""
    changes = []
    for factor in network:
        rows = grid.along(factor, part)
        if not rows:
            continue
        mildest = min(rows, key=lambda row: min(_cost(grid, p) for p in row))
        ordered = sorted(mildest, key=lambda p: _cost(grid, p))
        cheapest, costliest = ordered[0], ordered[-1]
        ratio, interval, clear = grid.worse(grid.index(costliest), grid.index(cheapest))
        changes.append(Change(factor, cheapest, costliest, ratio, interval, clear))
    return sorted(changes, key=lambda c: -c.ratio)


def _cost(grid: Grid, point: Point) -> float:
    mean = grid.claims.cells[grid.index(point)].mean
    return -mean if grid.asked.deciding.higher_is_better else mean


def _slopes(grid: Grid, part: Sequence[Point], network: Sequence[Factor]) -> list[Slope]:
    """Time per second of delay of each row along the delay."""
    delay = next((f for f in network if f.name == DELAY), None)
    if delay is None or grid.asked.deciding.unit != "s" or grid.asked.deciding.higher_is_better:
        return []
    found = []
    for row in grid.along(delay, part):
        if len({p.parameters[DELAY] for p in row}) < 2:
            continue
        where = {f.name: row[0].parameters.get(f.name) for f in grid.asked.factors if f.name != DELAY}
        found.append(Slope(*_secant(grid, row), where))
    return found


def _secant(grid: Grid, row: Sequence[Point]) -> tuple[float, Interval | None]:
    """Time per unit of delay over the whole measured range; the interval from the pooled scatter of both ends.

    A program may hide the first milliseconds behind its computing, or be bound by its windows only beyond some: the range as
    measured is what the number holds for.
    """
    first, last = row[0], row[-1]
    span = float(last.parameters[DELAY]) - float(first.parameters[DELAY])
    low, high = grid.typical(first), grid.typical(last)
    scatter = grid.claims.scatter
    if scatter is None or grid.asked.published:
        return (high - low) / span, None
    n = [len(grid.asked.values(p)) for p in (first, last)]
    error = scatter.sd * float(np.sqrt(low**2 / n[0] + high**2 / n[1])) * float(stats.t.ppf(0.975, scatter.freedom))
    return (high - low) / span, Interval((high - low - error) / span, (high - low + error) / span, 0.95, "ends, pooled")


def _mildest_slope(slopes: Sequence[Slope]) -> Slope | None:
    return min(slopes, key=lambda s: _number(s.where.get(LOSS)), default=None)


def _sentence(
    grid: Grid, others: Sequence[Factor], part: Sequence[Point], changes: Sequence[Change], slopes: Sequence[Slope]
) -> str:
    """What one level of the other factors needs: "4 MiB: every ms of delay costs 33 ms ...; 1 % loss takes 1.3 times as long"."""
    told = []
    slope = _mildest_slope(slopes)
    for change in changes:
        if not change.clear:
            continue
        if change.factor.name == DELAY and slope is not None:
            told.append(_delay_words(slope, change))
        else:
            told.append(_change_words(grid, change))
    quiet = [c.factor.label for c in changes if not c.clear]
    if quiet:
        told.append(f"{' and '.join(quiet)} {'make' if len(quiet) > 1 else 'makes'} no measurable difference")
    clear = [c for c in changes if c.clear]
    if len(clear) > 1:
        told.append(f"{clear[0].factor.label} matters more")
    worst = _together(grid, part)
    if worst is not None and len(clear) > 1:
        told.append(f"together {factor_words(*worst)}")
    at = place(others, part[0].parameters)
    words = "; ".join(told)
    return f"{at}: {words}." if at else f"{words[:1].upper()}{words[1:]}."


def _delay_words(slope: Slope, change: Change) -> str:
    """Every ms of delay costs so many ms; one round trip holds two delays."""
    ends = slope.interval
    trips = slope.per_unit / 2
    words = f"every ms of delay costs {quantity(slope.per_unit * 1e-3, 's')}"
    if ends is not None and ends.low is not None and ends.high is not None:
        words += f" ({quantity(ends.low * 1e-3, 's')} to {quantity(ends.high * 1e-3, 's')})"
    words += f", {number(trips, 2)} round trip{'' if abs(trips - 1) < 0.05 else 's'}"
    most = level(change.factor, change.costliest.parameters[DELAY])
    return f"{words}, and {most} take {factor_words(change.ratio, change.interval)} as long"


def _change_words(grid: Grid, change: Change) -> str:
    to = level(change.factor, change.costliest.parameters[change.factor.name])
    start = level(change.factor, change.cheapest.parameters[change.factor.name])
    words = f"{to} {change.factor.label}" if change.factor.unit in ("share", "") else to
    if grid.asked.deciding.higher_is_better:
        return f"{words} leave{'s' if change.factor.unit == 'share' else ''} {percent(1 / change.ratio)} of what {start} gives"
    verb = "takes" if change.factor.unit == "share" else "take"
    return f"{words} {verb} {factor_words(change.ratio, change.interval)} as long as {start}"


def _together(grid: Grid, part: Sequence[Point]) -> tuple[float, Interval | None] | None:
    """How many times worse the worst point is than the best, where they differ in more than one factor."""
    best, worst = min(part, key=lambda p: _cost(grid, p)), max(part, key=lambda p: _cost(grid, p))
    differing = [f for f in grid.asked.factors if best.parameters.get(f.name) != worst.parameters.get(f.name)]
    if len(differing) < 2:
        return None
    ratio, interval, clear = grid.worse(grid.index(worst), grid.index(best))
    return (ratio, interval) if clear else None


def _causes(
    grid: Grid, others: Sequence[Factor], part: Sequence[Point], changes: Sequence[Change], slopes: Sequence[Slope]
) -> list[Cause]:
    """Every clear factor with what it explains of the log change, and how factors act together."""
    at = place(others, part[0].parameters)
    start = f"{at}: " if at else ""
    whole = log(max((c.ratio for c in changes), default=1.0)) or 1.0
    causes = [
        Cause(f"{start}{_change_words(grid, c)}", log(c.ratio) / whole, "share", "grid") for c in changes if c.clear
    ]
    loss = next((c for c in changes if c.factor.name == LOSS), None)
    if loss is not None and len(slopes) > 1:
        mild, harsh = slopes[0], slopes[-1]
        causes.append(
            Cause(
                f"{start}a ms of delay costs {quantity(mild.per_unit * 1e-3, 's')} without loss "
                f"and {quantity(harsh.per_unit * 1e-3, 's')} with it",
                None,
                "",
                "grid",
            )
        )
    return causes


def _figures(changes: Sequence[Change], slopes: Sequence[Slope]) -> list[Figure]:
    figures = []
    for c in changes:
        low, high = (None, None) if c.interval is None else (c.interval.low, c.interval.high)
        where = {**c.costliest.parameters}
        figures.append(Figure(f"factor of {c.factor.label}", c.ratio, "1", low, high, where))
    for s in slopes:
        low, high = (None, None) if s.interval is None else (s.interval.low, s.interval.high)
        figures.append(Figure("seconds per second of delay", s.per_unit, "1", low, high, s.where))
    return figures


def _no_effect(asked: Asked, grid: Grid, network: Sequence[Factor]) -> Answer:
    """No factor moved anything measurably: said with what could hide."""
    names = " and ".join(f.label for f in network)
    size = grid.claims.resolution()
    strength: Strength = "printed" if asked.published else "firm" if size is not None and size < 1.25 else "open"
    if strength == "open":
        seen = f" below {factor_words(size)}" if size else ""
        sentence = f"Too few repetitions: no effect of {names} can be told{seen}."
    else:
        make = "make" if len(network) > 1 else "makes"
        sentence = f"Over the measured range {names} {make} no difference above {percent((size or 1.05) - 1)}."
    return Answer("network", sentence, strength, scatter=grid.claims.scatter)
