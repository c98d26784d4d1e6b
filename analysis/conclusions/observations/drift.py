"""Drift over the order in which the trials ran.

In the model log(value) = point + slope * position + scatter the slope is estimated within the points: if points ran one after another, the
order of their means is also the order of the varied factor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import scipy  # special is loaded when first used; stdtrit is t.ppf, stdtr is t.cdf, without their checks

from analysis.conclusions.context import ExperimentQuestion
from analysis.conclusions.observations.scatter import SMALLEST, pooled
from analysis.conclusions.observations.scatter_groups import ScatterGroups, by_name
from analysis.scaling import Point

FOUND: Final = 0.01
"""P-value below which the trials drift."""
_BALANCED: Final = 0.5
"""Share of the order's variance within the points from which on the design is interleaved; sequential points have 1 / points**2."""


@dataclass(frozen=True, slots=True)
class Drift:
    """Change of the logarithm of the deciding metric from one trial to the next."""

    slope: float
    error: float
    """Standard error of the slope."""
    freedom: float
    trials: int
    balance: float
    """Share of the variance of the places that is within the points."""
    centre: float
    """Mean place of all trials."""

    @property
    def is_found(self) -> bool:
        return 2 * float(scipy.special.stdtr(self.freedom, -abs(self.slope) / self.error)) < FOUND

    @property
    def is_balanced(self) -> bool:
        """Return whether points ran early and late, which separates drift and effects."""
        return self.balance >= _BALANCED

    @property
    def is_removed(self) -> bool:
        """Return whether the answer compares the values without the drift."""
        return self.is_found and self.is_balanced

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the ends of the interval of the slope."""
        half = float(scipy.special.stdtrit(self.freedom, (1 + level) / 2)) * self.error
        return self.slope - half, self.slope + half

    def without(self, question: ExperimentQuestion, slope: float) -> ExperimentQuestion:
        """Return the experiment at the mean place, for means that drift by ``slope``.

        The estimated drift is removed within each point; the residuals are widened by its degree of freedom.
        """
        wider = float(np.sqrt((self.freedom + 1) / self.freedom))

        def move(point: Point) -> Point:
            logs, places = _logs(question, point)
            offsets = places - places.mean()
            within = wider * (logs - logs.mean() - self.slope * offsets)
            values = np.exp(logs.mean() - slope * (places.mean() - self.centre) + within)
            return replace(point, values={**point.values, question.deciding.metric: values.tolist()})

        points = [move(p) if len(question.values(p)) else p for p in question.points]
        return replace(question, points=points, is_without_drift=True)


def drift_of(question: ExperimentQuestion) -> Drift | None:
    """Return the drift over the order of the trials; None if it cannot be estimated."""
    points = question.measured()
    if question.published or any(len(_places(question, p)) != len(question.values(p)) for p in points):
        return None
    rows = [_logs(question, point) for point in points]
    freedom = sum(len(logs) - 1 for logs, _ in rows) - 1
    scales = _scales(question, points)
    if freedom < 1 or scales is None:
        return None
    all_places = np.concatenate([places for _, places in rows])
    within = np.concatenate([places - places.mean() for _, places in rows])
    weighted = np.concatenate([(places - places.mean()) / s for (_, places), s in zip(rows, scales, strict=True)])
    deviations = np.concatenate([(logs - logs.mean()) / s for (logs, _), s in zip(rows, scales, strict=True)])
    squares = float(weighted @ weighted)
    slope = float(weighted @ deviations) / squares
    residual = float(np.sqrt(np.sum((deviations - slope * weighted) ** 2) / freedom))
    return Drift(
        slope=slope,
        error=max(residual, SMALLEST / max(scales)) / squares**0.5,
        freedom=float(freedom),
        trials=len(all_places),
        balance=float(within @ within / np.sum((all_places - all_places.mean()) ** 2)),
        centre=float(all_places.mean()),
    )


def _places(question: ExperimentQuestion, point: Point) -> Sequence[int]:
    return point.order.get(question.deciding.metric, ())


def _logs(question: ExperimentQuestion, point: Point) -> tuple[np.ndarray, np.ndarray]:
    return np.log(question.values(point)), np.asarray(_places(question, point), dtype=np.float64)


def _scales(question: ExperimentQuestion, points: Sequence[Point]) -> list[float] | None:
    """Return each point's scatter, pooled as in the answer; None without repetitions."""
    groups = [question.values(p) for p in points]
    everything = pooled(groups)
    if everything is None:
        return None
    levels = [[repr(p.parameters.get(factor.name)) for p in points] for factor in question.factors]
    names = ScatterGroups.from_values(groups, levels).of
    scatters = {name: pooled(values) or everything for name, values in by_name(groups, names).items()}
    return [scatters[name].sd for name in names]
