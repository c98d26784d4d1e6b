"""Which choice is best, by how much, and from which size on: methods beside each other, and over sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from math import exp
from typing import Any, Final

from analysis.conclusions.answer import Answer, Cause, Figure
from analysis.conclusions.asked import Asked, Factor, Question
from analysis.conclusions.observations.grid import Grid
from analysis.conclusions.questions.strength import settle, strength
from analysis.conclusions.wording import factor_words, level, lower_first, place, value
from analysis.numbers import amount
from analysis.scaling import Point

_LISTED: Final = 2


def answer_treatment(asked: Asked) -> Answer:
    """The answer of a sweep over choices, at one size or over several."""
    scale = next(iter(asked.apart()), None)
    grid = Grid(asked)
    if asked.against is not None:
        return _told_as_factor(asked, grid, *asked.against)
    choices = [f for f in asked.factors if f is not scale]
    if len(grid.points) < 2:
        kind: Question = "treatment" if scale is None else "scale and treatment"
        return Answer(kind, "A second choice has to finish before they can be compared.", "open")
    if scale is None:
        return _at_one_size(asked, grid, choices)
    return _over_sizes(asked, grid, scale, choices)


def _told_as_factor(asked: Asked, grid: Grid, choice: str, baseline: str) -> Answer:
    """The answer where what was measured is how many times better one choice is than another."""
    scale = next((f for f in asked.factors if f.role == "scale"), None)
    told, figures = [], []
    for point in grid.points:
        ratio, interval = grid.typical(point), grid.claims.value(grid.index(point))
        at = f"at {level(scale, point.parameters[scale.name])} " if scale is not None else ""
        told.append(f"{at}{choice} is {factor_words(ratio, interval)} as fast as {baseline}")
        where = {} if scale is None else {scale.name: point.parameters[scale.name]}
        ends = (None, None) if interval is None else (interval.low, interval.high)
        figures.append(Figure("factor", ratio, "1", *ends, where))
    words = ", ".join(told)
    sentence = f"{words[:1].upper()}{words[1:]}."
    return Answer("scale and treatment", sentence, strength(asked, grid.claims), tuple(figures))


def _ranked(grid: Grid, points: Sequence[Point]) -> list[Point]:
    return sorted(points, key=grid.cost)


def _better(asked: Asked) -> str:
    return "as much" if asked.deciding.higher_is_better else "as fast"


def _at_one_size(asked: Asked, grid: Grid, choices: Sequence[Factor]) -> Answer:
    ranked = _ranked(grid, grid.points)
    best, second, worst = ranked[0], ranked[1], ranked[-1]
    index = grid.index
    ratio, interval, clear = grid.worse(index(worst), index(best))
    equal = [p for p in ranked[1:] if not grid.worse(index(p), index(best))[2]]
    at = value(asked, grid.typical(best), grid.claims.value(index(best)))
    figures = _figures(asked, grid, ranked)
    if not clear:
        seen = grid.claims.resolution()
        limit = f" above {factor_words(seen)}" if seen else ""
        leading = place(choices, best.parameters)
        sentence = (
            f"No choice can be told from another: no difference{limit} was measured; best so far {leading}, {at}."
        )
        return Answer(
            "treatment", sentence, "open", figures, (), settle(asked, grid, best, second), grid.claims.scatter
        )
    sentence = (
        f"{place(choices, best.parameters)} is best{_beside(choices, equal)}: {at}, {factor_words(ratio, interval)} "
        f"{_better(asked)} as {place(choices, worst.parameters)}."
    )
    figures += _best_figures(grid, choices, ranked, {})
    missing = settle(asked, grid, best, second) if second in equal else None
    held, causes = strength(asked, grid.claims), _confounded(grid, choices)
    return Answer("treatment", sentence[:1].upper() + sentence[1:], held, figures, causes, missing, grid.claims.scatter)


def _confounded(grid: Grid, choices: Sequence[Factor]) -> tuple[Cause, ...]:
    """State that the effects of settings that only change together are not separated."""
    if len(choices) < 2 or any(grid.along(factor) for factor in choices):
        return ()
    labels = [factor.label for factor in choices]
    words = f"{', '.join(labels[:-1])} and {labels[-1]} change together: their single effects were not measured"
    return (Cause(words[:1].upper() + words[1:]),)


def _beside(choices: Sequence[Factor], equal: Sequence[Point]) -> str:
    """The choices that cannot be told from the best: all are counted, few are named."""
    if not equal:
        return ""
    named = [place(choices, p.parameters) for p in equal[:_LISTED]]
    more = f" and {len(equal) - _LISTED} more" if len(equal) > _LISTED else ""
    return f" ({'; '.join(named)}{more} cannot be told from it)"


def _best_figures(
    grid: Grid, choices: Sequence[Factor], ranked: Sequence[Point], where: Mapping[str, Any]
) -> tuple[Figure, ...]:
    """The best choice, those that cannot be told from it, and how many times worse each other one is."""
    best = grid.index(ranked[0])
    figures = [Figure("best", place(choices, ranked[0].parameters), "", where=where)]
    for point in ranked[1:]:
        ratio, interval, clear = grid.worse(grid.index(point), best)
        ends = (None, None) if interval is None else (interval.low, interval.high)
        if not clear:
            figures.append(Figure("as good", place(choices, point.parameters), "", where=where))
        figures.append(Figure("times the best", ratio, "1", *ends, {**where, **_choice(choices, point)}))
    return tuple(figures)


def _over_sizes(asked: Asked, grid: Grid, scale: Factor, choices: Sequence[Factor]) -> Answer:
    """Best choice per size; sizes with the same best one are told together, and the factor at the largest size."""
    rows = _by_size(grid, scale)
    figures = _figures(asked, grid, grid.points)
    if not rows:
        sentence = "At no size was more than one choice measured: nothing to compare it with."
        return Answer("scale and treatment", sentence, "open", figures, (), None, grid.claims.scatter)
    told = {size: ranked for size, ranked in rows.items() if grid.clearly(ranked[-1], ranked[0])}
    for size, ranked in told.items():
        figures += _best_figures(grid, choices, ranked, {scale.name: size})
    figures += _also_figures(asked, grid)
    if not told:
        size, ranked = list(rows.items())[-1]
        seen = grid.claims.resolution()
        limit = f" above {factor_words(seen)}" if seen else ""
        sizes = f"At {level(scale, size)}" if len(rows) == 1 else "At no size"
        can = "no choice can" if len(rows) == 1 else "can a choice"
        sentence = f"{sizes} {can} be told from another: no difference{limit} was measured."
        missing = settle(asked, grid, ranked[0], ranked[-1])
        return Answer("scale and treatment", sentence, "open", figures, (), missing, grid.claims.scatter)
    sentence = _sizes_sentence(asked, grid, scale, choices, rows, told)
    causes = (*_causes(asked, grid, scale, choices), *_confounded(grid, choices))
    held = strength(asked, grid.claims)
    return Answer(
        "scale and treatment", sentence[:1].upper() + sentence[1:], held, figures, causes, None, grid.claims.scatter
    )


def _also_figures(asked: Asked, grid: Grid) -> tuple[Figure, ...]:
    """The medians of every point of what is told beside the deciding metric."""
    if asked.also is None:
        return ()
    medians = [(point, point.median(asked.also.metric)) for point in grid.points]
    places = [({f.name: p.parameters.get(f.name) for f in asked.factors}, m) for p, m in medians if m is not None]
    return tuple(Figure(asked.also.label, m, asked.also.unit, where=where) for where, m in places)


def _by_size(grid: Grid, scale: Factor) -> dict[float, list[Point]]:
    """The points of every size at which there is something to compare, best first."""
    sizes = sorted({p.parameters[scale.name] for p in grid.points})
    rows = {size: [p for p in grid.points if p.parameters[scale.name] == size] for size in sizes}
    return {size: _ranked(grid, points) for size, points in rows.items() if len(points) > 1}


def _sizes_sentence(
    asked: Asked,
    grid: Grid,
    scale: Factor,
    choices: Sequence[Factor],
    rows: Mapping[float, list[Point]],
    told: Mapping[float, list[Point]],
) -> str:
    size, ranked = list(told.items())[-1]
    best, worst = ranked[0], ranked[-1]
    ratio, interval, _ = grid.worse(grid.index(worst), grid.index(best))
    equal = [p for p in ranked[1:-1] if not grid.clearly(p, best)]
    tops = [(each, _top(grid, choices, points)) for each, points in rows.items() if each <= size]
    end = "" if size == max(rows) else f"; at {level(scale, max(rows))} no choice can be told from another"
    other = next((top for top in reversed(tops) if top[1] and top[1] != _choice(choices, best)), None)
    before = f"; at {level(scale, other[0])} {place(choices, other[1])} is" if other else ""
    return (
        f"{place(choices, best.parameters)} is best{_beside(choices, equal)}{_from_on(tops, _choice(choices, best), scale)}: "
        f"at {level(scale, size)} {factor_words(ratio, interval)} {_better(asked)} as {place(choices, worst.parameters)} "
        f"({value(asked, grid.typical(best))} against {value(asked, grid.typical(worst))}"
        f"{_also_words(asked, best, worst)}){before}{end}."
    )


def _also_words(asked: Asked, best: Point, worst: Point) -> str:
    """The medians of what is told beside the deciding metric: "; aggregate bandwidth 20 MB/s against 9 MB/s"."""
    if asked.also is None:
        return ""
    medians = [point.median(asked.also.metric) for point in (best, worst)]
    if any(m is None for m in medians):
        return ""
    told = " against ".join(amount(m, asked.also.unit) for m in medians if m is not None)
    return f"; {lower_first(asked.also.label)} {told}"


def _top(grid: Grid, choices: Sequence[Factor], ranked: Sequence[Point]) -> dict[str, Any] | None:
    """The choice that is better than every other one of its size."""
    clear = all(grid.clearly(p, ranked[0]) for p in ranked[1:])
    return _choice(choices, ranked[0]) if clear else None


def _choice(choices: Sequence[Factor], point: Point) -> dict[str, Any]:
    return {f.name: point.parameters.get(f.name) for f in choices}


def _from_on(tops: Sequence[tuple[float, Mapping[str, Any] | None]], best: Mapping[str, Any], scale: Factor) -> str:
    """' from 3 hosts on' where it leads clearly from there to the end, ' at every size' where it does everywhere."""
    first = len(tops)
    for position in range(len(tops) - 1, -1, -1):
        if tops[position][1] != best:
            break
        first = position
    if first == len(tops):
        return ""
    return " at every size" if first == 0 else f" from {level(scale, tops[first][0])} on"


def _causes(asked: Asked, grid: Grid, scale: Factor, choices: Sequence[Factor]) -> tuple[Cause, ...]:
    """How each choice's metric changes with the size: what gets worse most explains the difference."""

    def key(point: Point) -> str:
        return repr(_choice(choices, point))

    rows, label = [], lower_first(asked.deciding.label)
    for _, each in groupby(sorted(grid.points, key=key), key=key):
        members = sorted(each, key=lambda p: p.parameters[scale.name])
        if len(members) < 2:
            continue
        small, large = (grid.index(members[i]) for i in (0, -1))
        first, last = (level(scale, members[i].parameters[scale.name]) for i in (0, -1))
        growth = exp(grid.claims.change(large, small))
        words = f"at {last} {factor_words(growth, grid.claims.ratio(large, small))} what it is at {first}"
        rows.append((grid.worse(large, small)[0], f"{place(choices, members[0].parameters)}: {label} {words}"))
    chart = "time" if asked.deciding.metric == "elapsed_s" else "deciding"
    return tuple(Cause(words, worse, "1", chart) for worse, words in sorted(rows, reverse=True)[:5])


def _figures(asked: Asked, grid: Grid, points: Sequence[Point]) -> tuple[Figure, ...]:
    figures = []
    for point in points:
        interval = grid.claims.value(grid.index(point))
        ends = (None, None) if interval is None else (interval.low, interval.high)
        where = {f.name: point.parameters.get(f.name) for f in asked.factors}
        figures.append(Figure(asked.deciding.label, grid.typical(point), asked.deciding.unit, *ends, where))
    return tuple(figures)
