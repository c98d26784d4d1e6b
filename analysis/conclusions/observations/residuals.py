"""Scatter of an experiment without repetitions, from its smallest effects.

After Lenth 1989. The residuals of additive factors, or of a smooth curve over one number. If factors interact or the
curve has corners, the residuals exceed the scatter of the trials: claims become fewer, not wrong.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from analysis.conclusions.context import ExperimentQuestion, Factor
from analysis.conclusions.observations.grid import ordinal
from analysis.conclusions.observations.scatter import SMALLEST, Scatter
from analysis.conclusions.observations.transfer import fit_transfer
from analysis.scaling import Point

_FEWEST: Final = 2
"""Degrees of freedom below which nothing is said."""
_BEND: Final = {"load": 1, "scale": 2}
"""Degree of the smooth curve over the logarithm of a size: growth is a power, scaling has one turn."""


def scatter_of_residuals(asked: ExperimentQuestion) -> Scatter | None:
    """Return the scatter of points that were measured once; None if it is not known."""
    points = asked.measured()
    if asked.published or asked.steps or not asked.factors or any(len(asked.values(p)) > 1 for p in points):
        return None
    if len(asked.factors) == 1:
        if asked.factors[0].role == "message" and asked.deciding.unit == "s":
            return _transfer(asked.factors[0], points, [asked.values(p)[0] for p in points])
        columns = _curve(asked.factors[0], points)
    else:
        columns = [column for factor in asked.factors for column in _levels(factor, points)]
    if not columns:
        return None
    design = np.column_stack([np.ones(len(points)), *columns])
    logs = np.log([asked.values(p)[0] for p in points])
    coefficients, _, rank, _ = np.linalg.lstsq(design, logs, rcond=None)
    freedom = len(points) - int(rank)
    if freedom < _FEWEST:
        return None
    residuals = logs - design @ coefficients
    return Scatter(max(float(np.sqrt(residuals @ residuals / freedom)), SMALLEST), freedom, "small effects")


def _transfer(factor: Factor, points: list[Point], times: list[float]) -> Scatter | None:
    try:
        fit = fit_transfer([ordinal(p.parameters.get(factor.name)) for p in points], times)
    except ValueError:
        return None
    freedom = fit.points - 2
    return Scatter(max(fit.residual_share, SMALLEST), freedom, "small effects") if freedom >= _FEWEST else None


def _curve(factor: Factor, points: list[Point]) -> list[np.ndarray]:
    """Return powers of the logarithm of a positive size; none of a word."""
    sizes = np.array([ordinal(p.parameters.get(factor.name)) for p in points])
    if factor.role not in _BEND or (sizes <= 0).any():
        return []
    x = np.log(sizes) - np.log(sizes).mean()
    return [x**power for power in range(1, _BEND[factor.role] + 1)]


def _levels(factor: Factor, points: list[Point]) -> list[np.ndarray]:
    names = [repr(p.parameters.get(factor.name)) for p in points]
    return [np.array([float(name == one) for name in names]) for one in sorted(set(names))]
