"""Time per millisecond of delay, with its interval, and how loss changes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from analysis.conclusions.asked import Factor
from analysis.conclusions.observations.grid import Grid, ordinal
from analysis.conclusions.observations.scatter import LEVEL
from analysis.conclusions.wording import percent
from analysis.numbers import amount
from analysis.scaling import Point
from analysis.statistics import Interval

DELAY: Final = "link.delay"
LOSS: Final = "link.loss"


@dataclass(frozen=True, slots=True)
class Slope:
    """Time per unit of delay, at the other factors' ``where``; ``interval`` None without repetitions."""

    per_unit: float
    interval: Interval | None
    where: Mapping[str, Any]

    @property
    def clear(self) -> bool:
        """Whether time grows with delay as far as the interval tells."""
        return self.per_unit > 0 and (self.interval is None or (self.interval.low or 0) > 0)


def slopes_of(grid: Grid, part: Sequence[Point], network: Sequence[Factor]) -> list[Slope]:
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
    """Time per unit of delay over the whole measured range; the interval from the intervals of both ends (Zou and Donner 2008).

    A program may hide the first milliseconds behind its computing, or be bound by its windows only beyond some: the range as
    measured is what the number holds for. Where the times differ measurably, the interval stays on their side of zero.
    """
    first, last = row[0], row[-1]
    span = float(last.parameters[DELAY]) - float(first.parameters[DELAY])
    low, high = grid.typical(first), grid.typical(last)
    ends = [grid.claims.value(grid.index(p)) for p in (first, last)]
    if any(e is None or e.low is None or e.high is None for e in ends):
        return (high - low) / span, None
    (a, b), (c, d) = ((float(e.low or 0), float(e.high or 0)) for e in ends if e is not None)
    lower = high - low - float(np.hypot(high - c, b - low))
    upper = high - low + float(np.hypot(d - high, low - a))
    ratio = grid.claims.ratio(grid.index(last), grid.index(first))
    if ratio is not None and ratio.low is not None and ratio.low > 1:
        lower = max(lower, a * (ratio.low - 1))
    return (high - low) / span, Interval(lower / span, upper / span, LEVEL, "of both ends, on logarithms")


def slopes_by_loss(slopes: Sequence[Slope]) -> str:
    """What a millisecond of delay costs with the least and with the most loss, the other properties kept at one level."""
    if len(slopes) < 2 or LOSS not in slopes[0].where:
        return ""
    kept = {name: level for name, level in slopes[0].where.items() if name != LOSS}
    row = [s for s in slopes if all(s.where.get(name) == level for name, level in kept.items()) and s.clear]
    ordered = sorted(row, key=lambda s: ordinal(s.where[LOSS]))
    if len(ordered) < 2:
        return ""
    mild, harsh = ordered[0], ordered[-1]
    least, most = (ordinal(s.where[LOSS]) for s in (mild, harsh))
    at = f"at {percent(least)}" if least else "without"
    return (
        f"a ms of delay costs {amount(mild.per_unit * 1e-3, 's')} {at} loss "
        f"and {amount(harsh.per_unit * 1e-3, 's')} at {percent(most)}"
    )
