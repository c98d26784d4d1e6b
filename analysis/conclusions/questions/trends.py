"""Laws along one factor: latency and bandwidth of messages, growth with the problem."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite
from typing import Final

import numpy as np
from scipy import special  # stdtrit is t.ppf, fdtrc is f.sf, without their checks

from analysis.conclusions.answer import Answer, Figure, Missing, Strength
from analysis.conclusions.asked import Asked, Factor, Question
from analysis.conclusions.observations.grid import Grid, ordinal
from analysis.conclusions.observations.transfer import MIN_SIZES, TransferFit, fit_transfer
from analysis.conclusions.questions.strength import settle, strength
from analysis.conclusions.wording import factor_words, level, lower_first, percent
from analysis.numbers import amount, between, significant
from analysis.statistics import Interval

_RATES: Final = {"B/s": 1.0, "bit/s": 8.0}
"""Units of a bandwidth, and how many of them a byte per second is."""
_JOINT: Final = 0.99
"""Level of each of three intervals that hold together."""
_KNOWN: Final = 10.0
"""An interval whose ends differ by more than this tells no number."""
_MISFIT: Final = 0.001
"""P-value of the test of lack of fit below which a law is not what the points follow."""


def answer_messages(asked: Asked) -> Answer:
    """Latency, bandwidth and half-bandwidth size of a sweep over message sizes."""
    grid = Grid(asked)
    factor = asked.of_role("message")[0]
    rate = _RATES.get(asked.deciding.unit)
    if rate is None and (asked.deciding.unit != "s" or asked.deciding.higher_is_better):
        return answer_growth(asked)
    rows = [(ordinal(p.parameters[factor.name]), v) for p in grid.points for v in asked.values(p)]
    sizes = [n for n, _ in rows]
    if len(set(sizes)) < MIN_SIZES:
        sentence = f"Latency and bandwidth cannot be told from fewer than {MIN_SIZES} sizes of message."
        return Answer("message size", sentence, "open")
    times = [v if rate is None else n * rate / v for n, v in rows]
    if rate is not None:
        rows = [(n, t) for (n, _), t in zip(rows, times, strict=True) if n > 0]
        sizes, times = [n for n, _ in rows], [t for _, t in rows]
    changed = _longest_differs(grid, factor)
    try:
        fit = fit_transfer(sizes, times, confidence=_JOINT)
    except ValueError:
        changed = False
    if not changed:
        sentence = (
            "Too few repetitions: no effect of the message size can be told, and so neither latency nor bandwidth."
        )
        return Answer("message size", sentence, "open", (), (), _ends(asked, grid, factor), grid.claims.scatter)
    return _messages_told(asked, grid, fit)


def _ends(asked: Asked, grid: Grid, factor: Factor) -> Missing | None:
    """What would tell the smallest size from the largest."""
    ordered = sorted(grid.points, key=lambda p: ordinal(p.parameters[factor.name]))
    return settle(asked, grid, ordered[0], ordered[-1])


def _longest_differs(grid: Grid, factor: Factor) -> bool:
    """Whether the longest message measurably takes another time than all shorter ones together: one comparison, planned before."""
    lengths = [ordinal(p.parameters[factor.name]) for p in grid.points]
    long, short = lengths.index(max(lengths)), lengths.index(min(lengths))
    others = len(lengths) - 1
    found = grid.claims.contrast([1.0 if i == long else -1 / others for i in range(len(lengths))])
    return grid.claims.differ(long, short) if found is None else abs(found[0]) > found[1]


def _messages_told(asked: Asked, grid: Grid, fit: TransferFit) -> Answer:
    """The parts of the fit that the measured sizes tell: short messages the latency, long ones the bandwidth."""
    told, figures = [], []
    for name, value, ends, unit, words in (
        ("latency", fit.latency_s, fit.latency_interval_s, "s", "a message takes {} to start"),
        ("bandwidth", fit.bandwidth_Bps, fit.bandwidth_interval_Bps, "B/s", "long ones flow at {}"),
        (
            "half-bandwidth size",
            fit.half_bandwidth_bytes,
            fit.half_bandwidth_interval_bytes,
            "B",
            "half of that rate is reached at {}",
        ),
    ):
        if not isfinite(ends[1]) or ends[0] <= 0 or ends[1] / ends[0] > _KNOWN:
            continue
        figures.append(Figure(name, value, unit, *ends))
        told.append(words.format(f"{amount(value, unit)} ({between(*ends, unit)})"))
    if not told:
        sentence = "Latency and bandwidth cannot be told yet: the times scatter too much."
        missing = _ends(asked, grid, asked.of_role("message")[0])
        return Answer("message size", sentence, "open", (), (), missing, grid.claims.scatter)
    held = strength(asked, grid.claims)
    sentence = "; ".join(told)
    scatter = grid.claims.scatter
    if scatter is not None and _off(fit.residual_share, fit.points - 2, scatter.sd, scatter.freedom):
        sentence += f"; single sizes are off that line by {percent(fit.residual_share)}"
        held = "moderate" if held == "firm" else held
    return Answer("message size", sentence[0].upper() + sentence[1:] + ".", held, tuple(figures), (), None, scatter)


def _off(residual: float, freedom: float, sd: float, known: float) -> bool:
    """Whether points are off a law by more than trials scatter."""
    return freedom > 0 and float(special.fdtrc(freedom, known, (residual / sd) ** 2)) < _MISFIT


@dataclass(frozen=True, slots=True)
class Power:
    """The power law through points; ``error`` is half the interval of the exponent, None without known scatter."""

    exponent: float
    error: float | None
    misfit: float | None
    """Scatter of the points about the law, where that is more than trials explain."""


def answer_growth(asked: Asked) -> Answer:
    """How the metric grows with the size of the problem: the exponent of a power law with its interval."""
    factor = asked.factors[0]
    sized = [p for p in asked.measured() if ordinal(p.parameters.get(factor.name)) > 0]
    kind: Question = "message size" if factor.role == "message" else "growth"
    if len({ordinal(p.parameters[factor.name]) for p in sized}) < 2:
        return Answer(kind, "A second size has to finish before the growth can be told.", "open")
    grid = Grid(replace(asked, points=sized))
    x = np.log([ordinal(p.parameters[factor.name]) for p in grid.points])
    first, last = int(x.argmin()), int(x.argmax())
    start, end = (level(factor, grid.points[i].parameters[factor.name]) for i in (first, last))
    law = _power(grid, x)
    ends = (None, None) if law.error is None else (law.exponent - law.error, law.exponent + law.error)
    ratio, change = _growth(grid, law, x)
    limits = (None, None) if change is None else (change.low, change.high)
    told = grid.claims.differ(last, first) if change is None else not (change.low or 0) <= 1 <= (change.high or 0)
    figures = (Figure("exponent", law.exponent, "1", *ends), Figure("growth", ratio, "1", *limits))
    if not told:
        sentence = f"Too few repetitions: no growth from {start} to {end} can be told."
        if asked.published:
            sentence = f"From {start} to {end} the printed values differ by less than 5 %."
        held: Strength = "printed" if asked.published else "open"
        return Answer(kind, sentence, held, figures, (), _ends(asked, grid, factor), grid.claims.scatter)
    grows = f"grows {factor_words(ratio, change)}" if ratio > 1 else f"falls to {percent(ratio)}"
    about = "" if law.error is None else f" ({between(law.exponent - law.error, law.exponent + law.error, digits=2)})"
    shape = f", as the power {significant(law.exponent, 2)}{about} of the size"
    if law.misfit is not None:
        shape = f"; no single power of the size fits: sizes are off it by {percent(law.misfit)}"
    sentence = f"From {start} to {end} {lower_first(asked.deciding.label)} {grows}{shape}."
    return Answer(kind, sentence, strength(asked, grid.claims), figures, (), None, grid.claims.scatter)


def _growth(grid: Grid, law: Power, x: np.ndarray) -> tuple[float, Interval | None]:
    """How many times the largest size is the smallest: by the law through all points where it fits, else by those two."""
    first, last = int(x.argmin()), int(x.argmax())
    if law.error is None or law.misfit is not None:
        return float(np.exp(grid.claims.change(last, first))), grid.claims.planned_ratio(last, first)
    low, middle, high = np.exp((x[last] - x[first]) * (law.exponent + np.array([-law.error, 0.0, law.error])))
    return float(middle), Interval(float(low), float(high), grid.claims.level, "t, of the exponent")


def _power(grid: Grid, x: np.ndarray) -> Power:
    """Fit the exponent, every point weighted with its repetitions; where the law does not fit, the misfit widens the interval."""
    y = np.array([cell.mean for cell in grid.claims.cells])
    n = np.array([cell.kept for cell in grid.claims.cells])
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
    sd, known = (misfit, freedom) if off else (scatter.sd, scatter.freedom)
    return Power(
        exponent, float(special.stdtrit(known, (1 + grid.claims.level) / 2)) * sd / spread**0.5, misfit if off else None
    )
