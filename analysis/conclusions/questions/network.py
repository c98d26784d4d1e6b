"""What does the program need from the network? Time per millisecond of delay, factor of loss and of rate, and which matters most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import log
from typing import Any, Final

from analysis.conclusions.answer import Answer, Cause, Figure
from analysis.conclusions.asked import Asked, Factor
from analysis.conclusions.observations.grid import Grid, ordinal
from analysis.conclusions.observations.needs import NO_INTERVAL, is_clear, needs_of
from analysis.conclusions.observations.slopes import DELAY, Slope, slopes_by_loss, slopes_of
from analysis.conclusions.questions.strength import MOST_RESOLVED, settle, strength
from analysis.conclusions.wording import factor_words, level, percent, place
from analysis.numbers import amount, between, plural
from analysis.scaling import Point
from analysis.statistics import Interval

_TOLD: Final = 1.25
"""Where smaller changes than this cannot show, a factor is not said to make no difference: only that it cannot be told."""
_MOST_SHOWN: Final = 4
_MOST_LETTERS: Final = 600
"""Of a head line that is read at one go."""


@dataclass(frozen=True, slots=True)
class Change:
    """One network factor over its whole range, all others kept: how many times worse its costliest level is than its cheapest."""

    factor: Factor
    cheapest: Point
    costliest: Point
    ratio: float
    interval: Interval | None
    clear: bool
    harshest: Change | None = None
    """The same where the other network factors cost most, if that is another place: loss may matter only with delay."""

    @property
    def matters(self) -> bool:
        return self.clear or (self.harshest is not None and self.harshest.clear)


def answer_network(asked: Asked) -> Answer:
    """The answer of a sweep over properties of the network, for every level of the other factors."""
    network = asked.of_role("network")
    others = [f for f in asked.factors if f.role != "network"]
    grid = Grid(asked)
    slices = _slices(grid, others)
    if not slices or len(grid.points) < 2:
        return Answer("network", "A second setting of the network has to finish before its effect can be told.", "open")
    sentences, figures, causes, is_vague = [], [], [], False
    for part in slices:
        changes = _changes(grid, network, part)
        slopes = slopes_of(grid, part, network)
        needed = needs_of(asked, others, part)
        figures += [*(needed.figures if needed else ()), *_figures(grid, changes, slopes)]
        causes += _causes(grid, others, part, changes, slopes)
        sentences.append(needed.sentence if needed else _sentence(grid, others, part, changes, slopes))
        is_vague |= (
            needed.is_vague
            if needed
            else any(c.clear and c.interval is not None and not is_clear(c.interval) for c in changes)
        )
    if not any(f.name in ("matters", "most one-way delay", "least rate") for f in figures):
        return _no_effect(asked, grid, network, tuple(figures), _largest(grid, network, slices))
    largest = _largest(grid, network, slices)
    return Answer(
        "network",
        _shown(sentences),
        strength(asked, grid.claims),
        tuple(figures),
        tuple(causes[:5]),
        settle(asked, grid, largest.cheapest, largest.costliest) if is_vague else None,
        grid.claims.scatter,
    )


def _largest(grid: Grid, network: Sequence[Factor], slices: Sequence[Sequence[Point]]) -> Change:
    return max((c for part in slices for c in _changes(grid, network, part)), key=lambda c: c.ratio)


def _factor(ratio: float, interval: Interval | None) -> str:
    """Return a factor with its interval if that can be shown as numbers."""
    is_shown = interval is None or is_clear(interval)
    return factor_words(ratio, interval) if is_shown else f"{factor_words(ratio)} ({NO_INTERVAL})"


def _shown(sentences: Sequence[str]) -> str:
    """The first sentences and the last: what lies between is in the table, and more of it where they are long."""
    letters = sum(map(len, [*sentences[: _MOST_SHOWN - 1], sentences[-1]]))
    most = _MOST_SHOWN if letters <= _MOST_LETTERS else 2
    left = len(sentences) - most
    if left <= 0:
        return " ".join(sentences)
    more = f"{left} more combination{'s are' if left > 1 else ' is'} in the table."
    return " ".join([*sentences[: most - 1], sentences[-1], more])


def _slices(grid: Grid, others: Sequence[Factor]) -> list[list[Point]]:
    """Points by the levels of the other factors, in ascending order; single points are left out."""

    def key(point: Point) -> tuple[Any, ...]:
        return tuple((ordinal(v), str(v)) for f in others for v in [point.parameters.get(f.name)])

    ordered = sorted(grid.points, key=key)
    return [members for _, each in groupby(ordered, key=key) if len(members := list(each)) > 1]


def _changes(grid: Grid, network: Sequence[Factor], part: Sequence[Point]) -> list[Change]:
    """The effect of every factor alone, where the other network factors cost least, and most; the largest effect first."""
    changes = []
    for factor in network:
        rows = grid.along(factor, part)
        if not rows:
            continue
        rows = sorted(rows, key=lambda row: min(grid.cost(p) for p in row))
        mildest, harshest = _change(grid, factor, rows[0]), _change(grid, factor, rows[-1])
        changes.append(replace(mildest, harshest=harshest) if len(rows) > 1 else mildest)
    return sorted(changes, key=lambda c: -c.ratio)


def _change(grid: Grid, factor: Factor, row: Sequence[Point]) -> Change:
    ordered = sorted(row, key=lambda p: grid.cost(p))
    cheapest, costliest = ordered[0], ordered[-1]
    return Change(factor, cheapest, costliest, *grid.worse(grid.index(costliest), grid.index(cheapest)))


def _slope_of(change: Change, slopes: Sequence[Slope]) -> Slope | None:
    """The slope along the row of this change, where its ends are the row's and time grows with delay."""
    costliest = change.costliest.parameters
    if change.factor.name != DELAY or ordinal(costliest[DELAY]) <= ordinal(change.cheapest.parameters[DELAY]):
        return None
    same = (s for s in slopes if all(costliest.get(name) == level for name, level in s.where.items()))
    return next((s for s in same if s.clear), None)


def _sentence(
    grid: Grid, others: Sequence[Factor], part: Sequence[Point], changes: Sequence[Change], slopes: Sequence[Slope]
) -> str:
    """What one level of the other factors needs: "4 MiB: every ms of delay costs 33 ms ...; 1 % loss takes 1.3 times as long"."""
    told = []
    for change in changes:
        if not change.clear:
            if change.matters:
                told.append(_only_harshest_words(grid, change))
            continue
        slope = _slope_of(change, slopes)
        if slope is not None:
            told.append(_delay_words(slope, change))
        else:
            told.append(_change_words(grid, change) + _also_harshest_words(grid, change))
    quiet = [c.factor.label for c in changes if not c.matters]
    if quiet:
        told.append(f"{' and '.join(quiet)} {'make' if len(quiet) > 1 else 'makes'} no measurable difference")
    clear = [c for c in changes if c.matters]
    if _first_matters(grid, clear):
        told.append(f"{clear[0].factor.label} matters {'more' if len(clear) == 2 else 'most'}")
    worst = _together(grid, part)
    if worst is not None and len(clear) > 1:
        told.append(f"together {_factor(*worst)}")
    at = place(others, part[0].parameters)
    words = "; ".join(told)
    return f"{at}: {words}." if at else f"{words[:1].upper()}{words[1:]}."


def _first_matters(grid: Grid, clear: Sequence[Change]) -> bool:
    """Whether the first change is measurably larger than every other one: of changes from one point, their ends are compared."""
    if len(clear) < 2:
        return False
    first = clear[0]
    for other in clear[1:]:
        if other.cheapest is first.cheapest:
            if not grid.clearly(first.costliest, other.costliest):
                return False
        elif (
            first.interval is None or other.interval is None or (first.interval.low or 0) <= (other.interval.high or 0)
        ):
            return False
    return True


def _delay_words(slope: Slope, change: Change) -> str:
    """Every ms of delay costs so many ms; one round trip holds two delays."""
    ends = slope.interval
    words = f"every ms of delay costs {amount(slope.per_unit * 1e-3, 's')}"
    if ends is not None and ends.low is not None and ends.high is not None and is_clear(ends):
        words += f" ({between(ends.low * 1e-3, ends.high * 1e-3, 's')})"
    words += f", {plural(slope.per_unit / 2, 'round trip', digits=2)}"
    most = level(change.factor, change.costliest.parameters[DELAY])
    return f"{words}, and {most} take {_factor(change.ratio, change.interval)} as long"


def _change_words(grid: Grid, change: Change) -> str:
    to = level(change.factor, change.costliest.parameters[change.factor.name])
    start = level(change.factor, change.cheapest.parameters[change.factor.name])
    rate = change.factor.unit == "bit/s"  # says itself what it is
    words = to if rate else f"{to} {change.factor.label}"
    if grid.asked.deciding.higher_is_better:
        leave = "leave" if rate else "leaves"
        return f"{words} {leave} {percent(1 / change.ratio)} of what {start} gives"
    verb = "take" if rate else "takes"
    return f"{words} {verb} {_factor(change.ratio, change.interval)} as long as {start}"


def _elsewhere(grid: Grid, change: Change) -> str:
    """Where the other network factors cost most: " at 16 ms delay"."""
    others = [f for f in grid.asked.of_role("network") if f is not change.factor]
    return f" at {place(others, change.costliest.parameters)}"


def _only_harshest_words(grid: Grid, change: Change) -> str:
    """ "1 % loss takes 1.6 times as long as 0 % at 16 ms delay, and makes no measurable difference at 0 ms delay"."""
    if change.harshest is None:
        return ""
    there, here = _elsewhere(grid, change.harshest), _elsewhere(grid, change)
    return f"{_change_words(grid, change.harshest)}{there}, with no measurable difference{here}"


def _also_harshest_words(grid: Grid, change: Change) -> str:
    """The same factor where the others cost most, beside its effect where they cost least: ", 1.6 times at 16 ms delay"."""
    harshest = change.harshest
    if harshest is None or not harshest.clear or grid.asked.deciding.higher_is_better:
        return ""
    words = _factor(harshest.ratio, harshest.interval)
    return f", {'also ' if words == _factor(change.ratio, change.interval) else ''}{words}{_elsewhere(grid, harshest)}"


def _together(grid: Grid, part: Sequence[Point]) -> tuple[float, Interval | None] | None:
    """How many times worse the worst point is than the best, where they differ in more than one factor."""
    best, worst = min(part, key=lambda p: grid.cost(p)), max(part, key=lambda p: grid.cost(p))
    differing = [f for f in grid.asked.factors if best.parameters.get(f.name) != worst.parameters.get(f.name)]
    if len(differing) < 2:
        return None
    ratio, interval, clear = grid.worse(grid.index(worst), grid.index(best))
    return (ratio, interval) if clear else None


def _causes(
    grid: Grid, others: Sequence[Factor], part: Sequence[Point], changes: Sequence[Change], slopes: Sequence[Slope]
) -> list[Cause]:
    """Every clear factor with what it explains of the log change, and how factors act together."""
    at = place(others, part[0].parameters)
    start = f"{at}: " if at else ""
    clear = [shown for c in changes if c.matters and (shown := c if c.clear else c.harshest) is not None]
    whole = sum(log(c.ratio) for c in clear) or 1.0
    causes = [
        Cause(f"{start}{_change_words(grid, c)}{_at_harshest(grid, c, changes)}", log(c.ratio) / whole, "share", "grid")
        for c in clear
    ]
    told = slopes_by_loss(slopes)
    if told:
        causes.append(Cause(f"{start}{told}", None, "", "grid"))
    return causes


def _at_harshest(grid: Grid, change: Change, changes: Sequence[Change]) -> str:
    return "" if any(change is c for c in changes) else _elsewhere(grid, change)


def _figures(grid: Grid, changes: Sequence[Change], slopes: Sequence[Slope]) -> list[Figure]:
    figures = []
    for c in changes:
        low, high = (None, None) if c.interval is None else (c.interval.low, c.interval.high)
        where = {**c.costliest.parameters}
        figures.append(Figure(f"factor of {c.factor.label}", c.ratio, "1", low, high, where))
        if c.matters:
            figures.append(Figure("matters", c.factor.name, where=where))
        if c.harshest is not None:
            low, high = (
                (None, None) if c.harshest.interval is None else (c.harshest.interval.low, c.harshest.interval.high)
            )
            where = {**c.harshest.costliest.parameters}
            figures.append(
                Figure(f"factor of {c.factor.label}, others harshest", c.harshest.ratio, "1", low, high, where)
            )
    if _first_matters(grid, [c for c in changes if c.matters]):
        figures.append(Figure("matters most", changes[0].factor.name, where=changes[0].cheapest.parameters))
    for s in slopes:
        low, high = (None, None) if s.interval is None else (s.interval.low, s.interval.high)
        figures.append(Figure("seconds per second of delay", s.per_unit, "1", low, high, s.where))
    return figures


def _no_effect(
    asked: Asked, grid: Grid, network: Sequence[Factor], figures: tuple[Figure, ...], seen: Change
) -> Answer:
    """No factor moved anything measurably: said with what could hide; ``seen`` is the largest change that was."""
    names = " and ".join(f.label for f in network)
    make = "make" if len(network) > 1 else "makes"
    if asked.published:
        sentence = f"Over the printed range {names} {make} no difference above {percent(grid.claims.PRINTED - 1)}."
        return Answer("network", sentence, "printed", figures)
    size = grid.claims.resolution()
    ends = [f for f in figures if f.name.startswith("factor of ")]
    largest = max((f.high or 1 for f in ends), default=1.0)
    if size is None or not ends or largest >= _TOLD:
        limit = f" below {factor_words(size)}" if size and size < MOST_RESOLVED else ""
        sentence = f"Too few repetitions: no effect of {names} can be told{limit}."
        missing = settle(asked, grid, seen.cheapest, seen.costliest)
        return Answer("network", sentence, "open", figures, (), missing, grid.claims.scatter)
    sentence = f"Over the measured range {names} {make} less than {percent(largest - 1)} of a difference."
    figures = (*figures, Figure("largest difference", largest - 1, "share of the best"))
    return Answer("network", sentence, strength(asked, grid.claims), figures, scatter=grid.claims.scatter)
