"""The head line of a comparison of choices, at one size or over several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from analysis.conclusions.context import Asked, Factor
from analysis.conclusions.observations.grid import Grid
from analysis.conclusions.wording import factor_words, first_up, joined, level, lower_first, place, value
from analysis.numbers import amount
from analysis.scaling import Point
from analysis.statistics import Interval

SECOND_CHOICE: Final = "A second choice has to finish before they can be compared."
ONE_CHOICE: Final = "At no size was more than one choice measured: nothing to compare it with."
_LISTED: Final = 2


def factors(grid: Grid, scale: Factor | None, choice: str, baseline: str) -> str:
    clauses = []
    for point in grid.points:
        at = f"at {level(scale, point.parameters[scale.name])} " if scale is not None else ""
        ratio = factor_words(grid.typical(point), grid.interval(point))
        clauses.append(f"{at}{choice} is {ratio} as fast as {baseline}")
    return f"{first_up(', '.join(clauses))}."


def _better(asked: Asked) -> str:
    return "as much" if asked.deciding.higher_is_better else "as fast"


def _limit(grid: Grid) -> str:
    seen = grid.claims.resolution()
    return f" above {factor_words(seen)}" if seen else ""


def no_choice(grid: Grid, choices: Sequence[Factor], best: Point) -> str:
    leading = f"{place(choices, best.parameters)}, {value(grid.asked, grid.typical(best), grid.interval(best))}"
    return f"No choice can be told from another: no difference{_limit(grid)} was measured; best so far {leading}."


def best_choice(grid: Grid, choices: Sequence[Factor], ranked: Sequence[Point], equal: Sequence[Point]) -> str:
    best, worst = ranked[0], ranked[-1]
    ratio, interval, _ = grid.compare(worst, best)
    at = value(grid.asked, grid.typical(best), grid.interval(best))
    return first_up(
        f"{place(choices, best.parameters)} is best{_beside(choices, equal)}: {at}, {factor_words(ratio, interval)} "
        f"{_better(grid.asked)} as {place(choices, worst.parameters)}."
    )


def confounded(choices: Sequence[Factor]) -> str:
    names = joined([factor.label for factor in choices])
    return first_up(f"{names} change together: their single effects were not measured")


def _beside(choices: Sequence[Factor], equal: Sequence[Point]) -> str:
    """Return the choices that do not differ from the best: all are counted, few are named."""
    if not equal:
        return ""
    named = [place(choices, p.parameters) for p in equal[:_LISTED]]
    more = f" and {len(equal) - _LISTED} more" if len(equal) > _LISTED else ""
    return f" ({'; '.join(named)}{more} cannot be told from it)"


def no_choice_at(grid: Grid, scale: Factor, sizes: Sequence[float]) -> str:
    is_one = len(sizes) == 1
    at = f"At {level(scale, sizes[0])} no choice can" if is_one else "At no size can a choice"
    return f"{at} be told from another: no difference{_limit(grid)} was measured."


def best_over_sizes(
    grid: Grid,
    scale: Factor,
    choices: Sequence[Factor],
    ranked: Sequence[Point],
    since: float | None,
    other: tuple[float, Mapping[str, Any] | None] | None,
    largest: float,
) -> str:
    """Return the best choice of the largest decided size; ``since`` is the size from which on it leads, 0 for every one."""
    best, worst = ranked[0], ranked[-1]
    size = best.parameters[scale.name]
    ratio, interval, _ = grid.compare(worst, best)
    equal = [p for p in ranked[1:-1] if not grid.clearly(p, best)]
    lead = "" if since is None else f" from {level(scale, since)} on" if since else " at every size"
    end = "" if size == largest else f"; at {level(scale, largest)} no choice can be told from another"
    before = f"; at {level(scale, other[0])} {place(choices, other[1])} is" if other else ""
    medians = [value(grid.asked, grid.typical(point)) for point in (best, worst)]
    return first_up(
        f"{place(choices, best.parameters)} is best{_beside(choices, equal)}{lead}: "
        f"at {level(scale, size)} {factor_words(ratio, interval)} {_better(grid.asked)} as {place(choices, worst.parameters)} "
        f"({' against '.join(medians)}{_also(grid.asked, best, worst)}){before}{end}."
    )


def _also(asked: Asked, best: Point, worst: Point) -> str:
    """Return the medians of what is shown beside the deciding metric: "; aggregate bandwidth 20 MB/s against 9 MB/s"."""
    if asked.also is None:
        return ""
    medians = [m for point in (best, worst) if (m := point.median(asked.also.metric)) is not None]
    if len(medians) < 2:
        return ""
    return f"; {lower_first(asked.also.label)} {' against '.join(amount(m, asked.also.unit) for m in medians)}"


def growth(
    grid: Grid,
    scale: Factor,
    choices: Sequence[Factor],
    members: Sequence[Point],
    ratio: float,
    interval: Interval | None,
) -> str:
    first, last = (level(scale, members[i].parameters[scale.name]) for i in (0, -1))
    name, label = place(choices, members[0].parameters), lower_first(grid.asked.deciding.label)
    return f"{name}: {label} at {last} {factor_words(ratio, interval)} what it is at {first}"
