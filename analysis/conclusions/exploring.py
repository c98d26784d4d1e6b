"""Sizes that rounds choose: few at first, then those that may be best. Pure.

The times of a program over its hosts fall, turn once, and rise. Where the Universal Scalability Law fits the measured sizes, the next size
is the best one that it predicts; otherwise the wider gap beside the best size is divided. Sizes beyond the largest one are run
only while it is not measurably slower than the best.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, log, sqrt
from typing import Final

import numpy as np
import scipy  # scipy.optimize is loaded when it is first used

from analysis.conclusions.observations.grid import SizeGrid
from analysis.scaling.laws import USL

_FIRST: Final = 3
"""Sizes of the first round, if the range is wide."""
_WIDE: Final = 4
"""Factor between two of them."""
_NARROW: Final = 2
"""Factor in a short range, and the widest gap beside a best size that a law describes."""
_DENSE: Final = 1.5
"""The widest gap beside another best size."""
_SIZES_OF_LAW: Final = 4
"""One more than the law has coefficients: then it can be wrong."""


@dataclass(frozen=True, slots=True)
class NextSizes:
    """Sizes to run next and why; none if the measured ones suffice."""

    sizes: Sequence[int]
    why: str = ""


def first_sizes(allowed: Sequence[int]) -> list[int]:
    """Return the sizes of the first round out of those that may run."""
    first, last = allowed[0], allowed[-1]
    factor = _WIDE if last >= _WIDE ** (_FIRST - 1) * first else _NARROW
    steps = [first * factor**k for k in range(_FIRST if factor == _WIDE else 64) if first * factor**k <= last]
    return sorted({_nearest(allowed, step) for step in steps} | ({last} if len(steps) < _FIRST else set()))


def possible_sizes(allowed: Sequence[int], measured: Collection[int], failed: Collection[int]) -> list[int]:
    """Return the sizes that are not nearest to one without a result."""

    def distance(size: int, others: Collection[int]) -> float:
        return min((abs(log(size / other)) for other in others), default=inf)

    return [size for size in allowed if distance(size, measured) <= distance(size, failed)]


def next_sizes(curve: SizeGrid, allowed: Sequence[int], matters: float) -> NextSizes:
    """Return the sizes that may be better than all measured ones.

    Parameters
    ----------
    curve
        The measured sizes.
    allowed
        Sizes that may run, ascending.
    matters
        Smallest difference that matters, as a share.
    """
    measured = [round(curve.level(i)) for i in range(len(curve.points))]
    new = [size for size in allowed if size not in measured]
    best, top = measured[curve.best], measured[-1]
    if len(measured) < 2 or not new:
        return NextSizes([])
    predicted = _predicted(curve, [*allowed, best])
    further = [size for size in new if size > top] if len(measured) - 1 in curve.enough_sizes else []
    inside = [size for size in new if size < top and _is_next_to_best(size, measured, best)]
    if predicted is not None:
        *costs, least = predicted
        cost_of = dict(zip(allowed, costs, strict=True))
        better = [size for size in (*inside, *further) if cost_of[size] < least - log(1 + matters) / 2]
        if better:
            chosen = min(better, key=cost_of.__getitem__)
            # A law that was fitted far from there is not believed at once.
            chosen = min(chosen, _nearest(new, _WIDE * top)) if chosen > top else chosen
            return NextSizes([chosen], f"The scaling law predicts a better time at {chosen} hosts")
    is_law = predicted is not None and len(measured) >= _SIZES_OF_LAW
    if further and not is_law:
        chosen = _nearest(further, _WIDE * top if len(measured) <= _FIRST else _NARROW * top)
        return NextSizes([chosen], f"{top} hosts are not measurably slower than fewer: more may be faster")
    gaps = [(a, b) for a, b in pairwise(measured) if best in (a, b) and b > (_NARROW if is_law else _DENSE) * a]
    gaps = [(a, b) for a, b in gaps if any(a < size < b for size in inside)]
    if not gaps:
        return NextSizes([])
    a, b = max(gaps, key=lambda gap: gap[1] / gap[0])
    chosen = _nearest([size for size in inside if a < size < b], sqrt(a * b))
    return NextSizes([chosen], f"A size between {a} and {b} hosts may be faster")


def _is_next_to_best(size: int, measured: Sequence[int], best: int) -> bool:
    """Return whether a size is between the best one and one of its neighbours."""
    below, above = [m for m in measured if m < best], [m for m in measured if m > best]
    return (below[-1] if below else best) < size < (above[0] if above else best)


def _predicted(curve: SizeGrid, sizes: Sequence[int]) -> list[float] | None:
    """Return logarithms of the law's costs; None if it does not fit."""
    x = np.array([curve.level(i) for i in range(len(curve.points))])
    costs = np.array([curve.cost(point) for point in curve.points])
    if len(x) < USL.basis(x).shape[1]:
        return None
    counts = np.array([len(curve.question.values(point)) for point in curve.points])
    design = USL.basis(x) * np.exp(-costs)[:, None]  # relative errors
    coefficients, _ = scipy.optimize.nnls(design * np.sqrt(counts)[:, None], np.sqrt(counts))
    fitted = USL.basis(x) @ coefficients
    if not (fitted > 0).all():
        return None
    errors = [_error(curve, i) for i in range(len(x))]
    if any(abs(log(f) - c) > error for f, c, error in zip(fitted, costs, errors, strict=True)):
        return None
    predicted = USL.basis(np.array(sizes, float)) @ coefficients
    return [log(cost) for cost in predicted] if (predicted > 0).all() else None


def _error(curve: SizeGrid, i: int) -> float:
    """Return the largest error of a law at a size: its interval, at least 2 %."""
    interval = curve.interval(curve.points[i])
    if interval is None or not interval.low or not interval.high:
        return 0.1
    return max(log(interval.high / interval.low) / 2, 0.02)


def _nearest(sizes: Sequence[int], to: float) -> int:
    return min(sizes, key=lambda size: abs(log(size / to)))
