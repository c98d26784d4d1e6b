"""Laws along one factor: latency and bandwidth, growth with the problem."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite
from typing import Final

import numpy as np
import scipy  # special is loaded when first used; stdtrit is t.ppf, fdtrc is f.sf, without their checks

from analysis.conclusions.answer import Answer, Figure, Missing, Strength
from analysis.conclusions.context import ExperimentQuestion, Factor, QuestionKind
from analysis.conclusions.observations.grid import Grid, ordinal
from analysis.conclusions.observations.transfer import MIN_SIZES, TransferFit, fit_transfer
from analysis.conclusions.questions.strength import compared, repeat, strength
from analysis.conclusions.sentences import answers as words
from analysis.statistics import Interval

_RATES: Final = {"B/s": 1.0, "bit/s": 8.0}
"""Units of a bandwidth, and how many of them a byte per second is."""
_JOINT: Final = 0.99
"""Level of each of three intervals that hold together."""
_KNOWN: Final = 10.0
"""An interval whose ends differ by more than this is not shown as a number."""
_MISFIT: Final = 0.001
"""P-value of the test of lack of fit below which a law is not what the points follow."""
_FEWEST_OF_A_LAW: Final = 3
"""Distinct sizes of a power law: every two points lie on one."""


def answer_messages(question: ExperimentQuestion) -> Answer:
    """Return latency, bandwidth and half-bandwidth size of a sweep over message sizes."""
    factor = question.of_role("message")[0]
    rate = _RATES.get(question.deciding.unit)
    if rate is None and (question.deciding.unit != "s" or question.deciding.higher_is_better):
        return answer_growth(question)
    grid = Grid(question)
    rows = [(ordinal(p.parameters[factor.name]), v) for p in grid.points for v in question.values(p)]
    if len({n for n, _ in rows}) < MIN_SIZES:
        return Answer("message size", words.FEW_SIZES, "open")
    if rate is not None:
        rows = [(n, n * rate / v) for n, v in rows if n > 0]
    try:
        fit = fit_transfer([n for n, _ in rows], [t for _, t in rows], confidence=_JOINT)
    except ValueError:
        fit = None
    if fit is None or not _longest_differs(grid, factor):
        return Answer("message size", words.NO_EFFECT_OF_SIZE, "open", (), (), _ends(grid, factor), grid.claims.scatter)
    return _of_fit(grid, factor, fit)


def _ends(grid: Grid, factor: Factor) -> Missing | None:
    ordered = sorted(grid.points, key=lambda p: ordinal(p.parameters[factor.name]))
    return repeat(grid, [compared(grid, ordered[0], ordered[-1])])


def _longest_differs(grid: Grid, factor: Factor) -> bool:
    lengths = [ordinal(p.parameters[factor.name]) for p in grid.points]
    long, short = lengths.index(max(lengths)), lengths.index(min(lengths))
    others = len(lengths) - 1
    contrast = grid.claims.contrast([1.0 if i == long else -1 / others for i in range(len(lengths))])
    return grid.claims.differ(long, short) if contrast is None else abs(contrast[0]) > contrast[1]


def _of_fit(grid: Grid, factor: Factor, fit: TransferFit) -> Answer:
    """Return the parameters of the fit that the measured sizes determine."""
    rows = (
        ("latency", fit.latency_s, fit.latency_interval_s, "s"),
        ("bandwidth", fit.bandwidth_Bps, fit.bandwidth_interval_Bps, "B/s"),
        ("half-bandwidth size", fit.half_bandwidth_bytes, fit.half_bandwidth_interval_bytes, "B"),
    )
    figures = tuple(
        Figure(name, value, unit, *ends)
        for name, value, ends, unit in rows
        if isfinite(ends[1]) and ends[0] > 0 and ends[1] / ends[0] <= _KNOWN
    )
    scatter, certainty = grid.claims.scatter, strength(grid.question, grid.claims)
    if not figures:
        return Answer("message size", words.TOO_MUCH_SCATTER, "open", (), (), _ends(grid, factor), scatter)
    is_off = scatter is not None and _off(fit.residual_share, fit.points - 2, scatter.sd, scatter.freedom)
    if is_off and certainty == "firm":
        certainty = "moderate"
    sentence = words.transfer(figures, fit.residual_share if is_off else None)
    return Answer("message size", sentence, certainty, figures, (), None, scatter)


def _off(residual: float, freedom: float, sd: float, scatter_freedom: float) -> bool:
    return freedom > 0 and float(scipy.special.fdtrc(freedom, scatter_freedom, (residual / sd) ** 2)) < _MISFIT


@dataclass(frozen=True, slots=True)
class Power:
    """The power law through points; ``error`` is half the exponent's interval."""

    exponent: float
    error: float | None
    misfit: float | None
    """Scatter of the points about the law, if that is more than trials explain."""


def answer_growth(question: ExperimentQuestion) -> Answer:
    """Return the growth with the problem size: the exponent of a power law."""
    factor = question.factors[0]
    sized = [p for p in question.measured() if ordinal(p.parameters.get(factor.name)) > 0]
    kind: QuestionKind = "message size" if factor.role == "message" else "growth"
    if len({ordinal(p.parameters[factor.name]) for p in sized}) < 2:
        return Answer(kind, words.SECOND_PROBLEM.format(factor=factor.label), "open")
    grid = Grid(replace(question, points=sized))
    x = np.log([ordinal(p.parameters[factor.name]) for p in grid.points])
    first, last = int(x.argmin()), int(x.argmax())
    law = _power(grid, x)
    ends = (None, None) if law.error is None else (law.exponent - law.error, law.exponent + law.error)
    ratio, change = _growth(grid, law, x)
    differs = grid.claims.differ(last, first) if change is None else not (change.low or 0) <= 1 <= (change.high or 0)
    power = [Figure("exponent", law.exponent, "1", *ends)] if len(set(x.tolist())) >= _FEWEST_OF_A_LAW else []
    figures = (*power, Figure.within("growth", ratio, "1", change))
    pair = [grid.points[i] for i in (first, last)]
    if not differs:
        certainty: Strength = "printed" if question.published else "open"
        sentence = words.no_growth(question, factor, pair)
        return Answer(kind, sentence, certainty, figures, (), _ends(grid, factor), grid.claims.scatter)
    exponent = law.exponent if power else None
    sentence = words.growth(question, factor, pair, (ratio, change), exponent, law.error, law.misfit)
    return Answer(kind, sentence, strength(question, grid.claims), figures, (), None, grid.claims.scatter)


def _growth(grid: Grid, law: Power, x: np.ndarray) -> tuple[float, Interval | None]:
    """Return the ratio of the largest size to the smallest, by the law if it fits."""
    first, last = int(x.argmin()), int(x.argmax())
    if law.error is None or law.misfit is not None:
        return float(np.exp(grid.claims.change(last, first))), grid.claims.planned_ratio(last, first)
    low, middle, high = np.exp((x[last] - x[first]) * (law.exponent + np.array([-law.error, 0.0, law.error])))
    return float(middle), Interval(float(low), float(high), grid.claims.level, "t, of the exponent")


def _power(grid: Grid, x: np.ndarray) -> Power:
    """Fit the exponent, weighted by repetitions; a misfit widens the interval."""
    y = np.array([cell.mean for cell in grid.claims.cells])
    n = np.array([cell.clean_n for cell in grid.claims.cells])
    middle = np.average(x, weights=n)
    spread = float(n @ (x - middle) ** 2)
    exponent = float(n @ ((x - middle) * y)) / spread
    residuals = y - np.average(y, weights=n) - exponent * (x - middle)
    freedom = len(x) - 2
    misfit = float(np.sqrt(n @ residuals**2 / freedom)) if freedom > 0 else 0.0
    scatter = grid.claims.scatter
    if scatter is None:
        return Power(exponent, None, None)
    off = _off(misfit, freedom, scatter.sd, scatter.freedom)
    sd, scatter_freedom = (misfit, freedom) if off else (scatter.sd, scatter.freedom)
    quantile = float(scipy.special.stdtrit(scatter_freedom, (1 + grid.claims.level) / 2))
    return Power(exponent, quantile * sd / spread**0.5, misfit if off else None)
