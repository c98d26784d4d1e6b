"""Extrapolation from few nodes and searches to many: an equation per phase.

The method of the White Rose Grid study: split the time into the first search of a node, which loads the data, and all later ones; fit an
equation over the number of nodes to each; add up for the target number of searches. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

import numpy as np

from analysis.scaling import Estimate, Fit, Study
from analysis.scaling.fitting import Sample, sample
from analysis.scaling.pmnf import Hypothesis, Term, fit_hypothesis
from analysis.statistics import Interval
from analysis.statistics.summary import Floats

_CANDIDATES: Final = ((), (Term(Fraction(1), 0),), (Term(Fraction(0), 1),))
"""Constant (multicast), proportional to the nodes (one link shared by all), logarithmic (a tree). Nothing that bends further is
offered: a few sizes cannot identify it, and it would diverge outside of them."""
_WORTH_A_TERM: Final = 0.8
"""A term must cut the leave-one-out error to this share."""
_EXACT: Final = 0.001
"""An equation that predicts left-out nodes to 0.1 % leaves a further term nothing but rounding to fit."""


def fit_phase(study: Study, metric: str) -> Fit | None:
    """Return the equation of one phase over the axis; None below three sizes."""
    data = sample(study, metric)
    if data is None or len(data.x) < 3:
        return None
    best, *others = (_fit(data, terms) for terms in _CANDIDATES)
    for fit in others:
        if _error(best) > _EXACT and _error(fit) < _WORTH_A_TERM * _error(best):
            best = fit
    return best


def _fit(data: Sample, terms: tuple[Term, ...]) -> Fit:
    fit = fit_hypothesis(data, Hypothesis(terms, cv_error=0.0), optimum=False)  # the fit has an error of its own
    title = "constant" if not terms else "logarithmic" if terms[0].logs else "linear"
    return replace(fit, title=title)


def _error(fit: Fit) -> float:
    return float("inf") if fit.cv_error is None else fit.cv_error


@dataclass(frozen=True, slots=True)
class Extrapolation:
    """Time of ``searches`` searches per node, s: the first, all later ones, both."""

    nodes: float
    searches: int
    first_s: Estimate
    later_s: Estimate
    """All later searches together."""
    total_s: Estimate
    beyond_nodes: bool
    """More or fewer nodes than were measured."""
    beyond_searches: bool
    """More searches than were run: the later ones are assumed to be constant."""
    draws: Floats
    """Totals of the bootstrap, shape (resamples,); empty without an error estimate."""


def extrapolate(
    first: Fit, later: Fit, *, nodes: float, searches: int, measured_searches: int, stream: int = 0
) -> Extrapolation:
    """Add the phases up: first(N) + (S - 1) later(N).

    ValueError for fewer than one node or search.

    Give methods that are compared a ``stream`` each: their first searches err independently, while the later ones, which are the same for
    all of them, err together.
    """
    if nodes < 1 or searches < 1:
        raise ValueError("at least one node and one search")
    parts = [_at(first, nodes, 1, stream + 1), _at(later, nodes, searches - 1, 0)]
    value = parts[0][0] + parts[1][0]
    some = min(len(draws) for _, draws in parts)
    draws = parts[0][1][:some] + parts[1][1][:some]
    low, high = first.measured
    return Extrapolation(
        nodes=nodes,
        searches=searches,
        first_s=_estimate(*parts[0]),
        later_s=_estimate(*parts[1]),
        total_s=_estimate(value, draws),
        beyond_nodes=not low <= nodes <= high,
        beyond_searches=searches > measured_searches,
        draws=draws,
    )


def times_faster(slow: Extrapolation, fast: Extrapolation) -> Estimate:
    """Return how many times less ``fast`` takes than ``slow``, with its interval."""
    some = min(len(slow.draws), len(fast.draws))
    return _estimate(slow.total_s.value / fast.total_s.value, slow.draws[:some] / fast.draws[:some])


def _at(fit: Fit, nodes: float, times: int, stream: int) -> tuple[float, Floats]:
    drawn = fit.drawn([nodes])[:, 0] if len(fit.draws) else np.zeros(0)
    # Every fit draws with the same seed; the order is mixed, or independent phases would move together.
    mixed = np.random.default_rng(stream).permutation(drawn)
    return times * float(fit.at([nodes])[0]), times * mixed


def _estimate(value: float, draws: Sequence[float] | Floats) -> Estimate:
    draws = np.asarray(draws, dtype=np.float64)
    draws = draws[draws > 0]  # neither times nor their ratios fall below zero, though a straight line may
    if not len(draws):
        return Estimate(value)
    low, high = np.quantile(draws, [0.025, 0.975])
    return Estimate(value, Interval(float(low), float(high), 0.95, "bootstrap of both equations, 95 % percentiles"))
