"""Answers under a drift over the order of the trials.

An answer is conclusive only if it holds for every slope that the trials do not exclude (analysis of covariance, Fisher 1932).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from analysis.conclusions.answer import Answer, Figure, Missing, Strength
from analysis.conclusions.context import ExperimentQuestion, Factor
from analysis.conclusions.observations.drift import Drift
from analysis.conclusions.observations.repetitions import MOST_REPETITIONS
from analysis.conclusions.sentences import answers as words
from analysis.numbers import plural

LEVEL: Final = 0.98
"""Level of the interval of possible slopes."""
_BEST: Final = frozenset({"best size", "best step", "best", "as good"})
"""Figures that name a best point or one that does not differ from it: an answer with more of them claims less."""
_LAWS: Final = frozenset({"exponent", "growth", "messages in a row"})
_UNITS: Final = frozenset({"s", "B", "B/s", "bit/s"})
"""Units of figures that are the answer."""


def judged(question: ExperimentQuestion, drift: Drift, compute: Callable[[ExperimentQuestion], Answer]) -> Answer:
    """Return the answer with the strength that the order of the trials allows.

    A drift of an interleaved design is removed. In any other design it cannot be separated from the varied factors: a conclusive
    answer that some slope would change is tentative, and if a drift was found, inconclusive.
    """
    if drift.is_removed:
        answer = replace(compute(drift.without(question, drift.slope)), is_without_drift=True)
        return _lowered(question, answer, "moderate", drift)
    answer = compute(question)
    if answer.strength != "firm" and not drift.is_found:
        return answer
    brief = replace(question, claims_only=True)
    others = (compute(drift.without(brief, slope)) for slope in drift.interval(LEVEL))
    survives = answer.strength == "open" or all(_holds(question, answer, other) for other in others)
    if drift.is_found and not survives:
        answer = replace(answer, sentence=_confounded(drift, question.factors))
        return _lowered(question, answer, "open", drift)
    return _lowered(question, answer, "moderate", drift) if drift.is_found or not survives else answer


def _confounded(drift: Drift, factors: Sequence[Factor]) -> str:
    names = " and ".join(factor.label for factor in factors) or "configurations"
    return words.CONFOUNDED_BY_DRIFT.format(drift=words.per_trial(drift), factors=names)


def _holds(question: ExperimentQuestion, answer: Answer, other: Answer) -> bool:
    """Return whether everything that an answer claims is claimed by another one too.

    Factors have to be on their side of 1, however large they are. Numbers that are the answer, those of a law, have to be within their
    intervals.
    """
    network = question.of_role("network")
    if other.strength != answer.strength or not _claims(answer, network) <= _claims(other, network):
        return False
    equal, places = _equal(answer), {repr(f.where) for f in answer.figures if f.name in _BEST}
    if any(where in places and (value, where) not in equal for value, where in _equal(other)):
        return False
    laws = {repr((f.name, f.where)): f for f in answer.figures if _is_of_law(f) and f.name != question.deciding.label}
    pairs = [(f, laws[key]) for f in other.figures if (key := repr((f.name, f.where))) in laws]
    return len(pairs) == len(laws) and all(_is_within(f.value, law) for f, law in pairs)


def _is_of_law(figure: Figure) -> bool:
    return (figure.low is not None or figure.high is not None) and (figure.unit in _UNITS or figure.name in _LAWS)


def _is_within(value: float | str | None, law: Figure) -> bool:
    low, high = (-np.inf if law.low is None else law.low), (np.inf if law.high is None else law.high)
    return not isinstance(value, int | float) or low <= value <= high


def _equal(answer: Answer) -> set[tuple[object, str]]:
    return {(f.value, repr(f.where)) for f in answer.figures if f.name in _BEST}


def _claims(answer: Answer, network: Sequence[Factor]) -> set[str]:
    """Return the claims of an answer: words, sizes, and sides of 1 of factors."""
    claims = set()
    for figure in answer.figures:
        if figure.name in _BEST or figure.name == "efficiency" or figure.unit.startswith("share"):
            continue
        what: object = figure.value
        if figure.name == "carried":
            what = (figure.low, figure.high)
        elif figure.unit == "1" and (figure.low is not None or figure.high is not None):
            what = _side(figure)
            if not what:
                continue
        elif figure.low is not None or figure.high is not None:
            what = "a number"
        claims.add(repr((figure.name, what, _where(figure, network))))
    return claims


def _where(figure: Figure, network: Sequence[Factor]) -> dict[str, Any]:
    """Return the place of a claim, without equal steps or links."""
    others = {f.name for f in network if figure.value != f.name and not figure.name.startswith(f"factor of {f.label}")}
    return {name: value for name, value in figure.where.items() if name not in others and name != "over"}


def _side(figure: Figure) -> int:
    """Return 1 above 1, -1 below, and 0 if the interval holds 1."""
    above = figure.low is not None and figure.low > 1
    return above - (figure.high is not None and figure.high < 1)


def _rounds(question: ExperimentQuestion) -> Missing:
    points = question.measured()
    more = min(max(2, int(np.median([len(question.values(p)) for p in points]))), MOST_REPETITIONS)
    seconds = None if question.trial_s is None else len(points) * more * question.trial_s
    return Missing(
        f"{more} more rounds of all {plural(len(points), 'configuration')}",
        tuple((p.parameters, more) for p in points),
        seconds,
    )


def _lowered(question: ExperimentQuestion, answer: Answer, most: Strength, drift: Drift) -> Answer:
    weaker: tuple[Strength, ...] = ("open", "moderate", "firm")
    strength = min(answer.strength, most, key=weaker.index)
    low, high = (float(np.expm1(end)) for end in drift.interval())
    figure = Figure("drift per trial", float(np.expm1(drift.slope)), "share of the value", low, high)
    missing = answer.missing if drift.is_balanced else _rounds(question)
    return replace(answer, strength=strength, missing=missing, drift=figure)
