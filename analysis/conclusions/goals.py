"""Goals: stop after a round of trials with a reason, or plan the next. Pure.

Every round looks at the data, so the error of an experiment's intervals is spent over its rounds (``share_of``): the first rounds take
an equal share each, as in Pocock's group-sequential test (1977); each later one takes half of the one before. Looks at growing data
agree, which keeps the error of the first eight together near the level. Decision 29 has the price.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, expm1, sqrt
from typing import Any, Final, Literal

import scipy  # special is loaded when first used; stdtrit is t.ppf without its checks

from analysis.conclusions.answer import Answer
from analysis.conclusions.answering import answer, experiment_intervals
from analysis.conclusions.context import ExperimentQuestion
from analysis.conclusions.exploring import next_sizes, possible_sizes
from analysis.conclusions.observations.grid import Grid, SizeGrid
from analysis.conclusions.observations.grid import key as key_of
from analysis.conclusions.observations.scatter import VALUE_LEVEL, weight_of_median
from analysis.conclusions.wording import listed_points, percent
from analysis.numbers import plural
from analysis.scaling import NOT_STARTED, Point

Outcome = Literal["continue", "answered", "precise", "at_most", "undecided", "no_result"]
Phase = Literal["", "search", "confirm"]
PLANNED: Final = 8
"""Rounds that spend an equal share of the error."""
_EQUAL_SHARE: Final = 0.2
_UNKNOWN: Final = 10.0
"""Half-width from which on an interval says nothing."""


def share_of(rounds: int) -> float:
    """Return the share of the error that intervals after so many rounds may spend."""
    return _EQUAL_SHARE * 0.5 ** max(0, rounds - PLANNED)


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision after a round: its reason, numbers, and trials of the next round."""

    outcome: Outcome
    reason: str
    numbers: Sequence[Mapping[str, Any]] = ()
    """Estimates with their intervals, in base units."""
    more: Sequence[tuple[Mapping[str, Any], int]] = ()
    """(parameters, repetitions) of the next round."""
    phase: Phase = ""
    """Part of a search for the best settings that the next round belongs to."""
    is_whole: bool = False
    """The trials of the next round run together or not at all."""

    @property
    def trials(self) -> int:
        return sum(count for _, count in self.more)


def decide(
    question: ExperimentQuestion,
    *,
    precision: float | None,
    at_most: int,
    at_least: int = 2,
    sizes: Sequence[int] = (),
) -> Decision:
    """Return the decision after a round.

    Parameters
    ----------
    question
        The experiment so far, with the ``share`` of this look.
    precision
        Largest half-width of the interval of each point, as a share; None: until the question is answered.
    at_most
        Largest number of repetitions of a point.
    at_least
        Repetitions of a new size.
    sizes
        Numbers of hosts that rounds may choose, ascending; empty if the design lists them.
    """
    if not question.measured():
        return Decision("no_result", "No trial of the round gave a result.")
    if question.search is not None:
        if not any(question.search.is_start(point.parameters) for point in question.measured()):
            return Decision("no_result", "The starting settings gave no result: nothing can be compared with them.")
        return replace(_to_answer(question, at_most, ()), phase="confirm")
    if precision is not None:
        return _to_precision(question, precision, at_most)
    return (_to_new_sizes(question, at_least, sizes) if sizes else None) or _to_answer(question, at_most, sizes)


def further_round(question: ExperimentQuestion, decision: Decision, *, at_least: int, at_most: int) -> Decision:
    """Return a round that a user requests: of all points if none is recommended.

    Without any result all points run again ``at_least`` times, as in round 1.
    """
    if decision.more:
        return decision
    if not question.measured():
        return replace(decision, outcome="continue", more=[(p.parameters, at_least) for p in question.points])
    points = [(point, len(question.values(point))) for point in question.measured()]
    return replace(decision, outcome="continue", more=_blocks(points, at_most))


def _to_precision(question: ExperimentQuestion, precision: float, at_most: int) -> Decision:
    intervals, grid = experiment_intervals(question), Grid(question)
    numbers, wide = [], []
    for i, point in enumerate(grid.points):
        interval, middle = intervals.value(point.parameters), grid.typical(point)
        half = None
        if interval is not None and interval.low is not None and interval.high is not None:
            half = max(interval.high / middle - 1, 1 - interval.low / middle)
            numbers.append(_number(question, point, middle, interval.low, interval.high, half_width=half))
        if half is None or half > precision:
            wide.append((i, half))
    if not wide:
        return Decision("precise", f"Every interval is within {percent(precision)}.", numbers)
    more = []
    for i, _ in wide:
        n = len(question.values(grid.points[i]))
        needed = _needed(grid, i, precision, at_most)
        if (count := _block(n, needed - n, at_most)) > 0:
            more.append((grid.points[i].parameters, count))
    halves = [half for _, half in wide if half is not None]
    is_known = halves and max(halves) < _UNKNOWN
    widest = f"The widest interval is ±{percent(max(halves))}" if is_known else "The scatter is not known yet"
    names = listed_points(question.factors, [grid.points[i] for i, _ in wide])
    reason = f"{widest}; the goal is ±{percent(precision)}, missed at {names}."
    if not more:
        return Decision("at_most", f"{reason} These have {at_most} counted trials, the most allowed.", numbers)
    return Decision("continue", reason, numbers, more)


def _needed(grid: Grid, i: int, precision: float, at_most: int) -> int:
    """Return the repetitions that narrow a point's interval to ``precision``."""
    scatter, n = grid.claims.scatter_of(i), len(grid.question.values(grid.points[i]))
    if scatter is None:
        return n + 2
    for count in range(n + 1, at_most):
        width = float(scipy.special.stdtrit(scatter.freedom + count - n, (1 + VALUE_LEVEL) / 2)) * scatter.sd
        if expm1(width / sqrt(weight_of_median(count))) <= precision:
            return count
    return at_most


def _to_new_sizes(question: ExperimentQuestion, at_least: int, sizes: Sequence[int]) -> Decision | None:
    """Return a round of sizes that may be better; None if the measured ones suffice."""
    curve = SizeGrid(question, question.of_role("scale")[0])
    has_result = {point.parameters[curve.factor.name] for point in question.measured()}
    failed = {point.parameters[curve.factor.name] for point in question.points if _has_failed(point)} - has_result
    following = next_sizes(curve, possible_sizes(sizes, has_result, failed), question.equal - 1)
    if not following.sizes:
        return None
    like = curve.points[0].parameters
    more = [({**like, curve.factor.name: size}, at_least) for size in following.sizes]
    return Decision("continue", f"{following.why}.", _numbers(answer(question)), more)


def _has_failed(point: Point) -> bool:
    """Return whether trials of a point failed; cancelled ones did not."""
    return bool(set(point.excluded) - {"cancelled", NOT_STARTED})


def _numbers(result: Answer) -> list[dict[str, Any]]:
    return [
        {"name": f.name, "value": f.value, "unit": f.unit, "low": f.low, "high": f.high, "where": dict(f.where)}
        for f in result.figures
        if f.low is not None or f.high is not None
    ]


def _to_answer(question: ExperimentQuestion, at_most: int, sizes: Sequence[int]) -> Decision:
    result = answer(question)
    numbers = _numbers(result)
    if result.strength == "firm" and result.missing is None:
        return Decision("answered", f"{result.sentence}{_why_no_larger(question, sizes)}", numbers)
    if result.missing is None and _drifts(result):
        return Decision("undecided", f"{result.sentence} The trials drift: more of them would not decide it.", numbers)
    n = {key_of(p.parameters): (p, len(question.values(p))) for p in question.measured()}
    needed = {key_of(parameters): count for parameters, count in (result.missing.points if result.missing else ())}
    more = _blocks([n[key] for key in needed if key in n] or list(n.values()), at_most, needed)
    if not more:
        return Decision(
            "at_most", f"{result.sentence} All open points have {at_most} counted trials, the most allowed.", numbers
        )
    return Decision("continue", result.sentence, numbers, more)


def _why_no_larger(question: ExperimentQuestion, sizes: Sequence[int]) -> str:
    """Return why the largest sizes that may be chosen have no result, or ""."""
    top = max((p.parameters["hosts"] for p in question.measured()), default=0) if sizes else 0
    if not sizes or top >= sizes[-1]:
        return ""
    than = f"than {plural(top, 'host')}"
    are_failed = any(point.parameters["hosts"] > top for point in question.points)
    return f" No trial of more {than} gave a result." if are_failed else f" More {than} were not run: the time rises."


def _drifts(result: Answer) -> bool:
    drift = result.drift
    return drift is not None and not (drift.low or 0) <= 0 <= (drift.high or 0)


def _blocks(
    points: Sequence[tuple[Point, int]], at_most: int, needed: Mapping[str, int] | None = None
) -> list[tuple[Mapping[str, Any], int]]:
    rows = [(p.parameters, _block(n, (needed or {}).get(key_of(p.parameters), n), at_most)) for p, n in points]
    return [(parameters, count) for parameters, count in rows if count > 0]


def _block(n: int, needed: int, at_most: int) -> int:
    """Return the next repetitions of a point, at most half of those measured."""
    return min(max(1, needed), max(2, ceil(n / 2)), at_most - n)


def _number(
    question: ExperimentQuestion, point: Point, value: float, low: float, high: float, **more: float
) -> dict[str, Any]:
    where = {f.name: point.parameters.get(f.name) for f in question.factors}
    deciding = question.deciding
    return {
        "name": deciding.label,
        "value": value,
        "unit": deciding.unit,
        "low": low,
        "high": high,
        "where": where,
        **more,
    }
