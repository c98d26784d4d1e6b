"""Which choice is best, by how much, and from which size on: methods beside each other, and over sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from math import exp
from typing import Any

from analysis.answers.answer import Answer, Cause, Figure, Missing, Strength
from analysis.answers.asked import Asked, Factor
from analysis.answers.network import Grid
from analysis.answers.scatter import repetitions_needed
from analysis.answers.wording import factor_words, level, place, value
from analysis.scaling import Point


def answer_treatment(asked: Asked) -> Answer:
    """The answer of a sweep over choices, at one size or over several."""
    grid = Grid(asked)
    if asked.against is not None:
        return _told_as_factor(asked, grid, *asked.against)
    scale = next((f for f in asked.factors if f.role == "scale"), None)
    choices = [f for f in asked.factors if f is not scale]
    if len(grid.points) < 2:
        return Answer("treatment", "A second choice has to finish before they can be compared.", "open")
    if scale is None:
        return _at_one_size(asked, grid, choices)
    return _over_sizes(asked, grid, scale, choices)


def _told_as_factor(asked: Asked, grid: Grid, choice: str, baseline: str) -> Answer:
    """The answer where what was measured is how many times better one choice is than another."""
    scale = next((f for f in asked.factors if f.role == "scale"), None)
    told, figures = [], []
    for point in grid.points:
        ratio = grid.typical(point)
        at = f" at {level(scale, point.parameters[scale.name])}" if scale is not None else ""
        told.append(f"{factor_words(ratio)}{at}")
        where = {} if scale is None else {scale.name: point.parameters[scale.name]}
        figures.append(Figure("factor", ratio, "1", where=where))
    sentence = f"{choice[:1].upper()}{choice[1:]} is {' and '.join(told)} as fast as {baseline}."
    return Answer("scale and treatment", sentence, _strength(asked, grid, clear=True), tuple(figures))


def _strength(asked: Asked, grid: Grid, *, clear: bool) -> Strength:
    if asked.published:
        return "printed"
    if not clear or grid.claims.scatter is None:
        return "open"
    return "firm" if grid.claims.scatter.source == "repetitions" else "moderate"


def _cost(asked: Asked, grid: Grid, point: Point) -> float:
    mean = grid.claims.cells[grid.index(point)].mean
    return -mean if asked.deciding.higher_is_better else mean


def _ranked(asked: Asked, grid: Grid, points: Sequence[Point]) -> list[Point]:
    return sorted(points, key=lambda p: _cost(asked, grid, p))


def _better(asked: Asked) -> str:
    return "as much" if asked.deciding.higher_is_better else "as fast"


def _at_one_size(asked: Asked, grid: Grid, choices: Sequence[Factor]) -> Answer:
    ranked = _ranked(asked, grid, grid.points)
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
            "treatment", sentence, "open", figures, (), _settle(asked, grid, best, second), grid.claims.scatter
        )
    beside = f" ({'; '.join(place(choices, p.parameters) for p in equal[:2])} cannot be told from it)" if equal else ""
    sentence = (
        f"{place(choices, best.parameters)} is best{beside}: {at}, {factor_words(ratio, interval)} {_better(asked)} "
        f"as {place(choices, worst.parameters)}."
    )
    strength = _strength(asked, grid, clear=True)
    return Answer("treatment", sentence[:1].upper() + sentence[1:], strength, figures, (), None, grid.claims.scatter)


def _over_sizes(asked: Asked, grid: Grid, scale: Factor, choices: Sequence[Factor]) -> Answer:
    """Best choice per size; sizes with the same best one are told together, and the factor at the largest size."""
    sizes = sorted({p.parameters[scale.name] for p in grid.points})
    tops: list[tuple[float, Mapping[str, Any] | None]] = []
    for size in sizes:
        ranked = _ranked(asked, grid, [p for p in grid.points if p.parameters[scale.name] == size])
        told = len(ranked) > 1 and (
            asked.published or any(grid.worse(grid.index(p), grid.index(ranked[0]))[2] for p in ranked[1:])
        )
        clear = told and all(grid.worse(grid.index(p), grid.index(ranked[0]))[2] for p in ranked[1:])
        tops.append((size, _choice(choices, ranked[0]) if clear else None))
    last = _ranked(asked, grid, [p for p in grid.points if p.parameters[scale.name] == sizes[-1]])
    index = grid.index
    ratio, interval, clear = grid.worse(index(last[-1]), index(last[0]))
    end = level(scale, sizes[-1])
    figures = _figures(asked, grid, grid.points)
    if len(last) < 2:
        sentence = f"At {end} only one choice was measured: nothing to compare it with."
        return Answer("scale and treatment", sentence, "open", figures, (), None, grid.claims.scatter)
    if not clear:
        seen = grid.claims.resolution()
        limit = f" above {factor_words(seen)}" if seen else ""
        sentence = f"At {end} no choice can be told from another: no difference{limit} was measured."
        missing = _settle(asked, grid, last[0], last[-1])
        return Answer("scale and treatment", sentence, "open", figures, (), missing, grid.claims.scatter)
    best = place(choices, last[0].parameters)
    from_on = _from_on(tops, _choice(choices, last[0]), scale)
    equal = [p for p in last[1:-1] if not grid.worse(index(p), index(last[0]))[2]]
    beside = f" ({' and '.join(place(choices, p.parameters) for p in equal)} cannot be told from it)" if equal else ""
    sentence = (
        f"{best} is best{beside}{from_on}: at {end} {factor_words(ratio, interval)} {_better(asked)} as "
        f"{place(choices, last[-1].parameters)} ({value(asked, grid.typical(last[0]))} against {value(asked, grid.typical(last[-1]))})."
    )
    strength = _strength(asked, grid, clear=True)
    causes = _causes(asked, grid, scale, choices, sizes)
    return Answer(
        "scale and treatment", sentence[:1].upper() + sentence[1:], strength, figures, causes, None, grid.claims.scatter
    )


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


def _causes(
    asked: Asked, grid: Grid, scale: Factor, choices: Sequence[Factor], sizes: Sequence[float]
) -> tuple[Cause, ...]:
    """How each choice's metric grows with the size: what grows most explains the difference."""

    def key(point: Point) -> str:
        return repr(_choice(choices, point))

    rows = []
    for _, each in groupby(sorted(grid.points, key=key), key=key):
        members = sorted(each, key=lambda p: p.parameters[scale.name])
        if len(members) < 2:
            continue
        growth, interval, _ = grid.worse(grid.index(members[-1]), grid.index(members[0]))
        first, last = (members[i].parameters[scale.name] for i in (0, -1))
        span = f"from {level(scale, first, counted=False)} to {level(scale, last)}"
        rows.append((growth, f"{place(choices, members[0].parameters)}: {factor_words(growth, interval)} {span}"))
    return tuple(Cause(words, growth, "1", "time") for growth, words in sorted(rows, reverse=True)[:5])


def _settle(asked: Asked, grid: Grid, best: Point, rival: Point) -> Missing | None:
    if asked.published:
        return None
    ratio, _, _ = grid.worse(grid.index(rival), grid.index(best))
    sd = grid.claims.scatter.sd if grid.claims.scatter else 0.05
    now = min(len(asked.values(best)), len(asked.values(rival)))
    more = min(repetitions_needed(max(ratio, 1.02), sd, points=len(grid.points), now=now) - now, 20)
    seconds = None if asked.trial_s is None else 2 * more * asked.trial_s
    names = f"{place(asked.factors, best.parameters)} and {place(asked.factors, rival.parameters)}"
    return Missing(f"{more} more repetitions at {names}", ((best.parameters, more), (rival.parameters, more)), seconds)


def _figures(asked: Asked, grid: Grid, points: Sequence[Point]) -> tuple[Figure, ...]:
    figures = []
    for point in points:
        interval = grid.claims.value(grid.index(point))
        ends = (None, None) if interval is None else (interval.low, interval.high)
        where = {f.name: point.parameters.get(f.name) for f in asked.factors}
        typical = exp(grid.claims.cells[grid.index(point)].mean)
        figures.append(Figure(asked.deciding.label, typical, asked.deciding.unit, *ends, where))
    return tuple(figures)
