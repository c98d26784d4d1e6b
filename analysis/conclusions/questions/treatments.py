"""Comparisons of choices, at one size or over several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations, groupby
from math import exp
from typing import Any, Final

from analysis.conclusions.answer import Answer, Cause, Figure
from analysis.conclusions.context import ExperimentQuestion, Factor, QuestionKind
from analysis.conclusions.observations.grid import Grid
from analysis.conclusions.questions.sizes import answer_scale, answer_weak
from analysis.conclusions.questions.strength import repeat, settled, strength, unsettled
from analysis.conclusions.sentences import answers as words
from analysis.conclusions.wording import first_up, joined, point_words
from analysis.scaling import Point

_LISTED: Final = 5
"""Choices whose scaling is stated: each takes an answer of its own."""


def answer_treatment(question: ExperimentQuestion) -> Answer:
    """Return the answer of a sweep over choices, at one size or over several."""
    scale = next(iter(question.separating()), None)
    grid = Grid(question)
    if question.against is not None:
        return _measured_as_factor(grid, *question.against)
    choices = [f for f in question.factors if f is not scale]
    if len(grid.points) < 2:
        kind: QuestionKind = "treatment" if scale is None else "scale and treatment"
        return Answer(kind, words.SECOND_CHOICE, "open")
    return _at_one_size(grid, choices) if scale is None else _over_sizes(grid, scale, choices)


def _measured_as_factor(grid: Grid, choice: str, baseline: str) -> Answer:
    scale = next((f for f in grid.question.factors if f.role == "scale"), None)
    figures = []
    for point in grid.points:
        where = {} if scale is None else {scale.name: point.parameters[scale.name]}
        figures.append(Figure.within("factor", grid.typical(point), "1", grid.interval(point), where))
    sentence = words.factors(grid, scale, choice, baseline)
    return Answer("scale and treatment", sentence, strength(grid.question, grid.claims), tuple(figures))


def _at_one_size(grid: Grid, choices: Sequence[Factor]) -> Answer:
    ranked = sorted(grid.points, key=grid.cost)
    best, worst = ranked[0], ranked[-1]
    figures = tuple(map(grid.figure, ranked))
    if not grid.clearly(worst, best):
        missing, certainty = repeat(grid, unsettled(grid, best, ranked)), strength(grid.question, grid.claims)
        if missing is None and certainty != "printed":
            pairs = combinations(ranked, 2)
            most = max(ratio.high or 1.0 for p, worse in pairs if (ratio := grid.compare(worse, p)[1])) - 1
            figures += (Figure("largest difference", most, "share of the best"),)
            sentence = words.equal_choices(grid, choices, best, most)
            return Answer("treatment", sentence, certainty, figures, scatter=grid.claims.scatter)
        sentence = words.no_choice(grid, choices, best)
        return Answer("treatment", sentence, "open", figures, (), missing, grid.claims.scatter)
    equal = grid.as_good(ranked)
    figures += _best_figures(grid, choices, ranked, {})
    certainty, missing = settled(grid, best, ranked)
    causes = _confounded(grid, choices)
    sentence = words.best_choice(grid, choices, ranked, equal)
    return Answer("treatment", sentence, certainty, figures, causes, missing, grid.claims.scatter)


def _confounded(grid: Grid, choices: Sequence[Factor]) -> tuple[Cause, ...]:
    """State that the effects of settings that only change together are not separated."""
    if len(choices) < 2 or any(grid.along(factor) for factor in choices):
        return ()
    names = joined([factor.label for factor in choices])
    return (Cause(first_up(words.CHANGE_TOGETHER.format(factors=names))),)


def _best_figures(
    grid: Grid, choices: Sequence[Factor], ranked: Sequence[Point], where: Mapping[str, Any]
) -> tuple[Figure, ...]:
    """Return figures of the best choice, of equal ones, and of all ratios to it."""
    figures = [Figure("best", point_words(choices, ranked[0].parameters), "", where=where)]
    for point in ranked[1:]:
        ratio, interval, clear = grid.compare(point, ranked[0])
        if not clear:
            figures.append(Figure("as good", point_words(choices, point.parameters), "", where=where))
        figures.append(Figure.within("times the best", ratio, "1", interval, {**where, **choice_of(choices, point)}))
    return tuple(figures)


def _over_sizes(grid: Grid, scale: Factor, choices: Sequence[Factor]) -> Answer:
    """Return the best choice per size; equal neighbours are answered together."""
    rows = _by_size(grid, scale)
    figures = tuple(map(grid.figure, grid.points))
    if not rows:
        return Answer("scale and treatment", words.ONE_CHOICE, "open", figures, (), None, grid.claims.scatter)
    decided = {size: ranked for size, ranked in rows.items() if grid.clearly(ranked[-1], ranked[0])}
    for size, ranked in decided.items():
        figures += _best_figures(grid, choices, ranked, {scale.name: size})
    figures += _also_figures(grid)
    causes = (*_causes(grid, scale, choices), *_confounded(grid, choices))
    if not decided:
        ranked = list(rows.values())[-1]
        missing = repeat(grid, unsettled(grid, ranked[0], ranked))
        sentence = words.no_choice_at(grid, scale, list(rows))
        return Answer("scale and treatment", sentence, "open", figures, causes, missing, grid.claims.scatter)
    ranked = list(decided.values())[-1]
    certainty, missing = settled(grid, ranked[0], ranked)
    sentence = _sizes_sentence(grid, scale, choices, rows, decided)
    return Answer("scale and treatment", sentence, certainty, figures, causes, missing, grid.claims.scatter)


def _also_figures(grid: Grid) -> tuple[Figure, ...]:
    also = grid.question.also
    if also is None:
        return ()
    medians = [(point, point.median(also.metric)) for point in grid.points]
    factors = grid.question.factors
    return tuple(Figure(also.label, m, also.unit, where=choice_of(factors, p)) for p, m in medians if m is not None)


def _by_size(grid: Grid, scale: Factor) -> dict[float, list[Point]]:
    """Return the points of every size with several choices, best first."""
    sizes = sorted({p.parameters[scale.name] for p in grid.points})
    rows = {size: [p for p in grid.points if p.parameters[scale.name] == size] for size in sizes}
    return {size: sorted(points, key=grid.cost) for size, points in rows.items() if len(points) > 1}


def _sizes_sentence(
    grid: Grid,
    scale: Factor,
    choices: Sequence[Factor],
    rows: Mapping[float, list[Point]],
    decided: Mapping[float, list[Point]],
) -> str:
    size, ranked = list(decided.items())[-1]
    best = choice_of(choices, ranked[0])
    tops = [(level, _top(grid, choices, points)) for level, points in rows.items() if level <= size]
    leads_from = next((i for i in range(len(tops), 0, -1) if tops[i - 1][1] != best), 0)
    other = next((top for top in reversed(tops) if top[1] and top[1] != best), None)
    since = None if leads_from == len(tops) else tops[leads_from][0]
    return words.best_over_sizes(grid, scale, choices, ranked, since, other, list(rows))


def _top(grid: Grid, choices: Sequence[Factor], ranked: Sequence[Point]) -> dict[str, Any] | None:
    """Return the choice that is better than every other one of its size."""
    clear = all(grid.clearly(p, ranked[0]) for p in ranked[1:])
    return choice_of(choices, ranked[0]) if clear else None


def choice_of(choices: Sequence[Factor], point: Point) -> dict[str, Any]:
    return {f.name: point.parameters.get(f.name) for f in choices}


def _causes(grid: Grid, scale: Factor, choices: Sequence[Factor]) -> tuple[Cause, ...]:
    """Return how each choice scales and why, the one that grows most first."""

    def key(point: Point) -> str:
        return repr(choice_of(choices, point))

    rows = []
    groups = [list(group) for _, group in groupby(sorted(grid.points, key=key), key=key)]
    for group in groups:
        members = sorted(group, key=lambda p: p.parameters[scale.name])
        if len(members) > 1:
            small, large = map(grid.index, (members[0], members[-1]))
            growth = exp(grid.claims.change(large, small)), grid.claims.ratio(large, small)
            statement = words.growth_of_choice(grid, scale, choices, (members[0], members[-1]), growth)
            rows.append((grid.worse(large, small)[0], statement, members))
    chart = "time" if grid.question.deciding.metric == "elapsed_s" else "deciding"
    causes = []
    for worse, statement, members in sorted(rows, key=lambda row: row[:2], reverse=True)[:_LISTED]:
        if scale.role == "scale" and not grid.question.claims_only:
            statement = words.of_choice(choices, members[0], _scaling(grid, scale, members, len(groups)).sentence)
        causes.append(Cause(statement, worse, "1", chart))
    return tuple(causes)


def _scaling(grid: Grid, scale: Factor, members: list[Point], choices: int) -> Answer:
    """Return the answer of one choice; the answers of all choices hold together."""
    question = grid.question
    others = [*question.other_points, *(point for point in grid.points if point not in members)]
    part = replace(question, points=members, factors=[scale], other_points=others, slices=question.slices * choices)
    return answer_weak(part) if question.weak else answer_scale(part)
