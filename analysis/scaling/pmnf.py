"""Performance model normal form: f(x) = c0 + sum of c_k x^i_k log2(x)^j_k.

The search is after Calotoiu et al. 2013. Every hypothesis of one term, and of two terms that add up, is fitted and
predicted leaving out one size at a time; the smallest error wins within a number of terms, and the number of terms must
pay for itself: by AICc, which charges two parameters per term (coefficient and exponents), or, without repetitions, by
halving the cross-validation error.

Differences from Extra-P: falling terms are always in the search (strong scaling falls with hosts), residuals are relative
(absolute ones on request: then one term gives the same coefficients), two terms may be used with one parameter, and a constant
is preferred until a term is worth its parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from itertools import combinations
from typing import Final

import numpy as np

from analysis.numbers import significant
from analysis.scaling.fitting import RESAMPLES, Basis, Errors, Sample, aicc, sample, solve
from analysis.scaling.models import Fit, percentiles, quality
from analysis.scaling.speedup import Estimate
from analysis.scaling.study import Study
from analysis.statistics.summary import Floats

_POSITIVE: Final = "1/4 1/3 1/2 2/3 3/4 4/5 1 5/4 4/3 3/2 5/3 7/4 2 9/4 7/3 5/2 8/3 11/4 3"
_WITH_LOG: Final = "1/4 1/3 1/2 2/3 3/4 1 5/4 4/3 3/2 2 5/2 3"
_SMALLEST_PART: Final = 0.0005
"""Least share of a term in the fitted values, as in Extra-P: smaller ones only fit rounding."""
_WORTH_A_TERM: Final = 0.5
_AICC_MARGIN: Final = 4.0
"""A model this much worse has considerably less support (Burnham and Anderson 2002, section 2.6)."""
_GRID: Final = 400


@dataclass(frozen=True, slots=True, order=True)
class Term:
    """x^power log2(x)^logs."""

    power: Fraction
    logs: int

    def __call__(self, x: Floats) -> Floats:
        values: Floats = x ** float(self.power) * np.log2(x) ** self.logs
        return values

    def __str__(self) -> str:
        parts = []
        if self.power:
            parts.append(
                "N" if self.power == 1 else f"N^{self.power}" if self.power.denominator == 1 else f"N^({self.power})"
            )
        if self.logs:
            parts.append("log2(N)" if self.logs == 1 else f"log2(N)^{self.logs}")
        return " ".join(parts)


def terms() -> list[Term]:
    """Return the search space: Extra-P's default exponents and their negatives.

    A falling power times a logarithm first rises and then falls; with six sizes such shapes fit noise.
    """
    plain = [Fraction(p) for p in _POSITIVE.split()]
    logged = [Fraction(0), *(Fraction(p) for p in _WITH_LOG.split())]
    pool = {Term(sign * p, 0) for p in plain for sign in (1, -1)} | {Term(p, j) for p in logged for j in (1, 2)}
    return sorted(pool, key=lambda t: (abs(t.power), t.logs, t.power < 0))


_TERMS: Final = terms()


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """Terms after the constant, and the error of leaving sizes out (SMAPE / 100)."""

    terms: tuple[Term, ...]
    cv_error: float

    @property
    def basis(self) -> Basis:
        chosen = self.terms
        return lambda x: np.column_stack([np.ones_like(x), *(t(x) for t in chosen)])


def search(data: Sample) -> tuple[Hypothesis, list[Hypothesis]]:
    """Return the chosen hypothesis and the best one of 0, 1 and 2 terms.

    At least four sizes are needed for a term and six for two; a size below 1 excludes logarithms.
    """
    most = 2 if len(data.x) >= 6 else 1 if len(data.x) >= 4 else 0
    best = [_best_of(data, count) for count in range(most + 1)]
    hypotheses = [h for h in best if h is not None]
    return _worth_its_terms(data, hypotheses), hypotheses


@cache
def _hypotheses(count: int, *, logs: bool) -> tuple[tuple[Term, ...], ...]:
    """Return every choice of so many terms.

    Two of nearly the same shape only fit noise against each other: one must fall or be flat, or they differ by 1/2.
    """
    usable = [term for term in _TERMS if logs or not term.logs]
    return tuple(
        chosen
        for chosen in combinations(usable, count)
        if count < 2 or abs(chosen[0].power - chosen[1].power) >= Fraction(1, 2)
    )


def _best_of(data: Sample, count: int) -> Hypothesis | None:
    """Return the hypothesis of so many terms with the least leave-one-out error."""
    logs = bool(data.x.min() >= 1)
    hypotheses = _hypotheses(count, logs=logs)
    design = _designs(tuple(data.x.tolist()), count, logs=logs)
    scale = np.sqrt(data.counts) / data.scale
    q, r = np.linalg.qr(design * scale[None, :, None])
    target = data.y * scale
    projected = np.einsum("hmk,m->hk", q, target)
    residual = target - np.einsum("hmk,hk->hm", q, projected)
    leverage = np.einsum("hmk,hmk->hm", q, q)
    with np.errstate(divide="ignore", invalid="ignore"):
        left_out = residual / (1 - leverage) / scale  # measured less predicted, without the size itself
        predicted = data.y - left_out
        error = np.mean(2 * np.abs(left_out) / (np.abs(predicted) + data.y), axis=1)
    valid = np.isfinite(error) & (leverage < 1 - 1e-9).all(axis=1) & _sound(design, r, projected)
    if not valid.any():
        return None
    best = int(np.argmin(np.where(valid, error, np.inf)))
    return Hypothesis(hypotheses[best], float(error[best]))


@lru_cache(maxsize=16)  # all metrics and slices of an experiment have the same few sizes
def _designs(sizes: tuple[float, ...], count: int, *, logs: bool) -> Floats:
    x = np.array(sizes)
    hypotheses = _hypotheses(count, logs=logs)
    column = {term: i for i, term in enumerate(_TERMS)}
    columns = np.array([term(x) if logs or not term.logs else np.zeros_like(x) for term in _TERMS])
    chosen = np.array([[column[term] for term in terms_of] for terms_of in hypotheses], dtype=np.intp)
    design = np.ones((len(hypotheses), len(x), 1 + count))
    for k in range(count):
        design[:, :, 1 + k] = columns[chosen[:, k]]
    return design


def _sound(design: Floats, r: Floats, projected: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Return which hypotheses are well posed, with terms that matter and add up.

    One term alone may be subtracted (values that level off); two are both added to a constant that is not negative.
    """
    diagonal = np.abs(np.diagonal(r, axis1=1, axis2=2))
    posed = diagonal.min(axis=1) > 1e-10 * diagonal.max(axis=1)
    coefficients = np.zeros_like(projected)
    coefficients[posed] = np.linalg.solve(r[posed], projected[posed][:, :, None])[:, :, 0]
    parts = design * coefficients[:, None, :]
    total = np.abs(parts.sum(axis=2)).max(axis=1)
    share = np.abs(parts[:, :, 1:]).max(axis=1) / np.where(total > 0, total, 1.0)[:, None]
    sound: np.ndarray[tuple[int, ...], np.dtype[np.bool_]] = posed & (share >= _SMALLEST_PART).all(axis=1)
    if design.shape[2] == 3:
        tolerance = -1e-9 * np.abs(coefficients).max(axis=1)
        sound &= (coefficients[:, 1:] > 0).all(axis=1) & (coefficients[:, 0] >= tolerance)
    return sound


def _worth_its_terms(data: Sample, hypotheses: list[Hypothesis]) -> Hypothesis:
    chosen = hypotheses[0]
    for more in hypotheses[1:]:
        if data.freedom:
            scores = [_charged(data, h) for h in (chosen, more)]
            better = scores[1] is not None and scores[0] is not None and scores[1] < scores[0] - _AICC_MARGIN
        else:
            better = more.cv_error < _WORTH_A_TERM * chosen.cv_error
        if better:
            chosen = more
    return chosen


def _charged(data: Sample, hypothesis: Hypothesis) -> float | None:
    return aicc(data, solve(data, hypothesis.basis, nonnegative=False), 1 + 2 * len(hypothesis.terms))


def pmnf(study: Study, metric: str, *, resamples: int = RESAMPLES, errors: Errors = "relative") -> Fit | None:
    """Search and fit; None with fewer than four sizes or a value that is not positive.

    Parameters: ``constant`` and one coefficient per term, named by the term, in the metric's unit. Intervals hold for the chosen
    terms; that others would have served nearly as well is not in them.
    """
    data = sample(study, metric, errors=errors)
    if data is None or len(data.x) < 4:
        return None
    is_time = metric == study.time_metric
    return fit_hypothesis(data, search(data)[0], resamples=resamples, optimum=is_time)


def fit_hypothesis(data: Sample, hypothesis: Hypothesis, *, resamples: int = RESAMPLES, optimum: bool = True) -> Fit:
    """Return the Fit of one hypothesis; ``optimum`` looks for the smallest value."""
    solution = solve(data, hypothesis.basis, nonnegative=False)
    common = quality(
        data,
        hypothesis.basis,
        solution,
        nonnegative=False,
        parameters=1 + 2 * len(hypothesis.terms),
        resamples=resamples,
    )
    names = ["constant", *(str(t) for t in hypothesis.terms)]
    draws = common["draws"]
    parameters = {name: percentiles(float(solution.coefficients[k]), draws[:, k]) for k, name in enumerate(names)}
    return Fit(
        model="pmnf",
        title="Performance model normal form",
        metric=data.metric,
        formula=_formula(solution.coefficients, hypothesis.terms),
        parameters=parameters,
        best_size=_best_size(data, hypothesis, solution.coefficients, draws) if optimum else None,
        **common,
    )


def _formula(coefficients: Floats, chosen: tuple[Term, ...]) -> str:
    text = significant(coefficients[0])
    for c, term in zip(coefficients[1:], chosen, strict=True):
        text += f" {'-' if c < 0 else '+'} {significant(abs(c))} {term}"
    return text


def _best_size(data: Sample, hypothesis: Hypothesis, coefficients: Floats, draws: Floats) -> Estimate | None:
    """Return the size of the smallest value up to 4 times the largest; else infinite."""
    if not hypothesis.terms:
        return None
    grid = np.geomspace(1.0, 4 * data.x.max(), _GRID)
    columns = hypothesis.basis(grid)

    def lowest(c: Floats) -> Floats:
        at = (c @ columns.T).argmin(axis=1)
        return np.where(at == _GRID - 1, np.inf, grid[at])

    return percentiles(float(lowest(coefficients[None, :])[0]), lowest(draws))
