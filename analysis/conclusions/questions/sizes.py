"""Sweeps over a size: the best size and its causes, weak-scaling efficiency."""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import Final

from analysis.conclusions.answer import Answer, Figure, Missing
from analysis.conclusions.context import ExperimentQuestion
from analysis.conclusions.observations.grid import Grid, SizeGrid
from analysis.conclusions.observations.repetitions import Comparison
from analysis.conclusions.questions.causes import Explanation, explained
from analysis.conclusions.questions.energy import with_energy
from analysis.conclusions.questions.strength import repeat, strength, unsettled
from analysis.conclusions.sentences import answers as words
from analysis.conclusions.wording import levels
from analysis.numbers import plural
from analysis.scaling import Point

_NEAR_IDEAL: Final = 0.9
"""An efficiency from here on needs no cause in the head line."""
_EFFICIENT: Final = 0.8
_MORE: Final = 4
"""Further repetitions of a point that was measured once."""


def answer_scale(question: ExperimentQuestion) -> Answer:
    """Return the answer of a sweep over one measure of size with the problem kept."""
    curve = SizeGrid(question, next(f for f in question.factors if f.role == "scale"))
    if len(curve.points) < 2:
        failed, others = _without_result(question, curve)
        return Answer("scale", words.one_size(curve, failed), "open", missing=_unmeasured(question, curve, others))
    last, as_good, best, enough = len(curve.points) - 1, curve.enough_sizes, curve.best, curve.enough
    if len(as_good) == len(curve.points):
        return _no_difference(curve)
    why = Explanation()
    if last not in as_good:
        worse = as_good[-1] + 1
        why = explained(question, curve.points[best], curve.points[worse])
        sentence = words.stop(curve, worse, why.because)
    elif 0 in as_good:
        sentence = words.between_worse(curve)
    else:
        why = explained(question, curve.points[0], curve.points[enough], curve.level(0) / curve.level(enough))
        efficiency = curve.worse(0, enough)[0] / (curve.level(enough) / curve.level(0))
        sentence = words.still_gains(curve, efficiency, why.because if efficiency < _NEAR_IDEAL else "")
    certainty = strength(question, curve.claims)
    if not curve.is_equal and question.is_slowed:
        certainty = "open"  # other load may have made the difference, or hidden it
    elif certainty == "firm" and not curve.is_equal:
        certainty = "moderate"
    missing = None if curve.is_equal else _repetitions_to_resolve(curve)
    result = Answer(
        "scale",
        sentence,
        certainty,
        _figures(curve, is_open=certainty == "open"),
        why.all_causes,
        missing,
        curve.claims.scatter,
        why.parts,
        compared=why.compared,
    )
    return with_energy(curve, result)


def _without_result(question: ExperimentQuestion, curve: SizeGrid) -> tuple[list[Point], list[Point]]:
    """Return the points without a result whose trials failed, and the others."""
    name = curve.factor.name
    measured = {point.parameters[name] for point in curve.points}
    points = [point for point in question.points if point.parameters[name] not in measured]
    return [point for point in points if point.lost], [point for point in points if not point.lost]


def _unmeasured(question: ExperimentQuestion, curve: SizeGrid, points: Sequence[Point]) -> Missing | None:
    """Return repetitions of sizes of the design that have no result."""
    if question.published or not points:
        return None
    factor = curve.factor
    names = levels(factor, sorted({point.parameters[factor.name] for point in points}))
    seconds = None if question.trial_s is None else _MORE * len(points) * question.trial_s
    statement = f"{plural(_MORE, 'repetition')} at {names}"
    return Missing(statement, tuple((point.parameters, _MORE) for point in points), seconds)


def _no_difference(curve: SizeGrid) -> Answer:
    """Return the answer without a measurably better size, with the largest difference."""
    question, claims = curve.question, curve.claims
    if question.published:
        return Answer("scale", words.equal(curve, None), "printed", _figures(curve))
    ends = [claims.ratio(i, curve.best) for i in range(len(curve.points)) if i != curve.best]
    ratios = [max(e.high, 1 / e.low) for e in ends if e is not None and e.low and e.high]
    if ratios and max(ratios) < question.equal:
        most = max(ratios) - 1
        figures = (*_figures(curve), Figure("largest difference", most, "share of the best"))
        sentence = words.equal(curve, most)
        return with_energy(
            curve, Answer("scale", sentence, strength(question, claims), figures, (), None, claims.scatter)
        )
    sentence = words.too_few(curve)
    return Answer(
        "scale", sentence, "open", _figures(curve, is_open=True), (), _repetitions_to_resolve(curve), claims.scatter
    )


def _repetitions_to_resolve(curve: SizeGrid) -> Missing | None:
    """Return the repetitions that would separate the best size from its rivals."""
    pairs = unsettled(curve, curve.points[curve.best], curve.points)
    return repeat(curve, pairs, _names(curve, pairs))


def _names(curve: SizeGrid, pairs: Sequence[Comparison]) -> str:
    """Return "2, 4 and 8 hosts"."""
    sizes = sorted({i for pair in pairs for i in (pair.first, pair.last)})
    return levels(curve.factor, [curve.points[i].parameters[curve.factor.name] for i in sizes]) if sizes else ""


def _figures(curve: SizeGrid, *, is_open: bool = False) -> tuple[Figure, ...]:
    factor, best = curve.factor, curve.best
    figures = [] if is_open else [Figure("enough", curve.level(curve.enough), factor.plural)]
    figures.append(Figure("best size", curve.level(best), factor.plural))
    figures += [Figure("as good", curve.level(i), factor.plural) for i in curve.enough_sizes if i != best]
    for i, point in enumerate(curve.points):
        where = {factor.name: point.parameters[factor.name]}
        figures.append(curve.figure(point, where))
        if i != best:
            ratio, about, _ = curve.worse(i, best)
            figures.append(Figure.within("times the best", ratio, "1", about, where))
    return tuple(figures)


_Ends = tuple[float | None, float | None]
_Efficiency = tuple[float, _Ends]


def answer_weak(question: ExperimentQuestion) -> Answer:
    """Return the efficiency at the largest size, and the first size below 80 %."""
    curve = SizeGrid(question, question.of_role("scale")[0])
    if len(curve.points) < 2:
        return Answer("weak scale", words.one_size(curve), "open")
    name, plural = curve.factor.name, curve.factor.plural
    rows = [_efficiency(curve, i) for i in range(1, len(curve.points))]
    figures = tuple(
        Figure("efficiency", share, "1", *ends, where={name: curve.points[i].parameters[name]})
        for i, (share, ends) in enumerate(rows, 1)
    )
    share, ends = rows[-1]
    fallen = _fallen([_below(question, row) for row in rows])
    if fallen is None:  # it may fall and rise again: then all sizes are looked at together
        together = [_efficiency(curve, i, together=True) for i in range(1, len(curve.points))]
        fallen = next((i for i, row in enumerate(together, 1) if _below(question, row)), None)
    certainty, missing, line = strength(question, curve.claims), None, words.STAYS_ABOVE
    if fallen is not None:
        perhaps = next((i for i, row in enumerate(rows, 1) if not _above(question, row)), fallen)
        line = words.falls(curve, fallen, perhaps)
        figures += (Figure("falls below 80 %", curve.level(fallen), plural),)
    elif all(_above(question, row) for row in rows):
        figures += (Figure("stays above 80 %", curve.level(-1), plural),)
    else:
        certainty, line = "open", words.UNDECIDED
        if not question.published:
            open_ones = [i for i, row in enumerate(rows, 1) if not (_below(question, row) or _above(question, row))]
            pairs = [Comparison(0, i, offset=_line(curve, i)) for i in open_ones]
            missing = repeat(curve, pairs, _names(curve, pairs))
    quoted = len(rows)
    if fallen is not None and not _below(question, rows[-1]):  # its own interval does not say so
        quoted, (share, ends) = fallen, rows[fallen - 1]
    why = explained(question, curve.points[0], curve.points[quoted]) if share < 1 else Explanation()
    sentence = words.efficiency(curve, quoted, share, ends, line, why.because if share < _EFFICIENT else "")
    scatter = curve.claims.scatter
    return Answer(
        "weak scale",
        sentence,
        certainty,
        figures,
        why.all_causes,
        missing,
        scatter,
        why.parts,
        compared=why.compared,
    )


def _fallen(below: Sequence[bool]) -> int | None:
    """Return the smallest size from which on every larger one is below.

    Tested from the largest size down, each test is one of its own.
    """
    fallen = None
    for i in range(len(below), 0, -1):
        if not below[i - 1]:
            break
        fallen = i
    return fallen


def _line(curve: SizeGrid, i: int) -> float:
    """Return the offset of size / smallest that is 0 at the lowest good efficiency."""
    is_rate = curve.question.deciding.higher_is_better
    return -log(_EFFICIENT * curve.level(i) / curve.level(0)) if is_rate else log(_EFFICIENT)


def _efficiency(curve: SizeGrid, i: int, *, together: bool = False) -> _Efficiency:
    """Return the efficiency against the smallest size and its interval."""
    is_rate = curve.question.deciding.higher_is_better
    slow, interval, _ = curve.worse(i, 0)
    if not together:
        interval = curve.claims.planned_ratio(0, i) if is_rate else curve.claims.planned_ratio(i, 0)
    ideal = curve.level(i) / curve.level(0) if is_rate else 1.0
    if interval is None or not interval.low or not interval.high:
        return 1 / slow / ideal, (None, None)
    return 1 / slow / ideal, (1 / interval.high / ideal, 1 / interval.low / ideal)


def _below(question: ExperimentQuestion, row: _Efficiency) -> bool:
    share, (_, high) = row
    return share < _EFFICIENT if question.published else high is not None and high < _EFFICIENT


def _above(question: ExperimentQuestion, row: _Efficiency) -> bool:
    share, (low, _) = row
    return share >= _EFFICIENT if question.published else low is not None and low >= _EFFICIENT


def answer_point(question: ExperimentQuestion) -> Answer:
    """Return median, interval and scatter of a single point."""
    grid = Grid(question)
    if not grid.points:
        return Answer("one point", words.no_answer(question), "open")
    point, scatter = grid.points[0], grid.claims.scatter
    n = len(question.values(point))
    sentence = words.one_point(question, grid.typical(point), grid.interval(point), scatter, n)
    if question.published:
        return Answer("one point", sentence, "printed", (grid.figure(point, {}),))
    if scatter is None:
        seconds = None if question.trial_s is None else _MORE * question.trial_s
        missing = Missing(plural(_MORE, "more repetition"), ((point.parameters, _MORE),), seconds)
        return Answer("one point", sentence, "open", missing=missing)
    figures = (grid.figure(point, {}), Figure("scatter", scatter.sd, "share of the value"))
    is_firm = scatter.source == "repetitions" and n > 2
    return Answer("one point", sentence, "firm" if is_firm else "moderate", figures, (), None, scatter)
