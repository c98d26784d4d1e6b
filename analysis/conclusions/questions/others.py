"""The answers of load tests, weak scaling and single points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from typing import Final

from analysis.conclusions.answer import Answer, Cause, Figure, Missing, Strength
from analysis.conclusions.asked import CAPACITY, Accepted, Asked
from analysis.conclusions.observations.grid import Grid
from analysis.conclusions.questions.causes import Explanation, explained
from analysis.conclusions.questions.scale import Curve
from analysis.conclusions.questions.strength import further, strength
from analysis.conclusions.wording import level, levels, percent, repetitions_words, value
from analysis.numbers import amount, plural, significant
from analysis.scaling import Point

_EFFICIENT: Final = 0.8


def answer_load(asked: Asked) -> Answer:
    """How many jobs each link carries by the experiment's rule, and what is used up first: only what reaches what it can give."""
    grid = Grid(asked)
    told = [row for row in asked.accepted if row.jobs is not None or row.first is not None]
    if not told:
        return Answer("load and network", "No link has been measured with one job and with more.", "open")
    ranges = [_sure(asked, grid, row) for row in told]
    groups: dict[str, list[str]] = {}
    for row, sure in zip(told, ranges, strict=True):
        groups.setdefault(_carried(row, sure), []).append(amount(row.capacity_bps, "bit/s"))
    parts = [f"{_joined(links)} {_verb(links, words)}" for words, links in groups.items()]
    figures = []
    for row, sure in zip(told, ranges, strict=True):
        where = {"link.bandwidth": row.capacity_bps}
        low, high = row.between or (None, None)
        if sure is not None and row.between is None:
            low, high = sure.low, sure.high
        figures.append(Figure("carried", row.jobs, "jobs", low, high, where))
        figures.append(Figure("used up first", row.first, "", where=where))
        figures.append(Figure("use", _share(row), "share", where=where))
        if row.is_arithmetic:
            figures.append(Figure("arithmetic limit", asked.load_factor, "jobs", where=where))
    causes = tuple(
        Cause(f"{amount(row.capacity_bps, 'bit/s')}: {_use(row)}", _share(row), "share", "envelope") for row in told
    )
    unsure = [sure is not None and not sure.decided for sure in ranges]
    held: Strength = strength(asked, grid.claims)
    if any(unsure) or (held == "open" and not asked.published):
        held = "open" if all(unsure) else "moderate"
    sentence = "; ".join(parts) + "."
    missing = _decides(asked, grid, told, ranges)
    if all(row.is_arithmetic for row in told):
        held, sentence = "open", f"{sentence} No capacity was measured: add pauses to the jobs or delay to the link."
    return Answer("load and network", sentence, held, tuple(figures), causes, missing, grid.claims.scatter)


def _decides(asked: Asked, grid: Grid, told: Sequence[Accepted], ranges: Sequence[Sure | None]) -> Missing | None:
    """Repetitions that would tell the first undecided load from what the rule accepts, on the first link that has one."""
    jobs = next((f.name for f in asked.of_role("load")), "")
    for row, sure in zip(told, ranges, strict=True):
        if sure is None or sure.decided or sure.low is None:
            continue
        on_link = [p for p in grid.points if p.parameters.get(CAPACITY) == row.capacity_bps]
        here: dict[float, Point] = {n: p for p in on_link if (n := p.parameters.get(jobs)) is not None}
        load = min(n for n in here if n > sure.low)
        beyond = exp(grid.cost(here[load]) - grid.cost(here[1])) / asked.load_factor
        now = min(len(asked.values(here[n])) for n in (1, load))
        more = further(grid.claims, max(beyond, 1 / beyond), now)
        seconds = None if asked.trial_s is None else 2 * more * asked.trial_s
        names = f"{plural(1, 'job')} and {plural(load, 'job')} on {amount(row.capacity_bps, 'bit/s')}"
        points = tuple((here[n].parameters, more) for n in (1, load))
        return Missing(repetitions_words(more, names), points, seconds)
    return None


@dataclass(frozen=True, slots=True)
class Sure:
    """Measured loads that the rule accepts and refuses whatever the scatter; ``decided`` where no measured load lies between."""

    low: float | None
    high: float | None
    decided: bool


def _sure(asked: Asked, grid: Grid, row: Accepted) -> Sure | None:
    """Judge the rule by the intervals of the wall times; None where the deciding metric does not hold them or nothing is repeated."""
    jobs = next((f.name for f in asked.of_role("load")), "")
    here = {p.parameters.get(jobs): p for p in grid.points if p.parameters.get(CAPACITY) == row.capacity_bps}
    single = here.get(1)
    if row.jobs is None or single is None or asked.deciding.higher_is_better or grid.claims.scatter is None:
        return None
    accepted: list[float] = [1.0]
    refused: list[float] = []
    open_: list[float] = []
    for load, point in here.items():
        if point is single or load is None:
            continue
        _, interval, _ = grid.worse(grid.index(point), grid.index(single))
        if interval is None or interval.low is None or interval.high is None:
            return None
        group = (
            accepted if interval.high < asked.load_factor else refused if interval.low >= asked.load_factor else open_
        )
        group.append(float(load))
    high = min(refused, default=None)
    low = max(load for load in accepted if high is None or load < high)
    between = [load for load in open_ if load > low and (high is None or load < high)]
    return Sure(min(low, row.jobs), high, not between)


def _share(row: Accepted) -> float | None:
    """The use of a resource; contents and headers measured apart can add up to a little more than it has."""
    return None if row.used is None else min(row.used, 1.0)


def _joined(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _verb(links: list[str], words: str) -> str:
    return words.replace("carries", "carry", 1) if len(links) > 1 else words


def _carried(row: Accepted, sure: Sure | None) -> str:
    if row.jobs is not None and row.first is not None and row.is_arithmetic:
        return (
            f"carries {_about(row)} by arithmetic: one job uses up {_named(row.first)}, so n jobs take n times as long"
        )
    used = _used_up(row.first) if row.first else "nothing measured is used up"
    if row.jobs is None:
        return f"carries a number of jobs that was not measured; {used}"
    if sure is not None and not sure.decided and sure.low is not None:
        upper = f" and fewer than {significant(sure.high)}" if sure.high else ""
        return f"carries at least {plural(sure.low, 'job')}{upper}, how many cannot be told yet, and {used}"
    between = f", read between {significant(row.between[0])} and {significant(row.between[1])}," if row.between else ""
    return f"carries {_about(row)}{between} and {used}"


def _about(row: Accepted) -> str:
    """ "about 24 jobs" between measured loads, "at least 40 jobs" beyond them."""
    about = "about " if row.between else "at least " if row.beyond_measured else ""
    return f"{about}{plural(row.jobs or 0, 'job', digits=3)}"


def _used_up(resource: str) -> str:
    """ "the link is used up first", "the processors, most of it server CPU, are used up first"."""
    name, comma, _ = resource.partition(",")
    return f"{_named(resource)}{comma} {'are' if name.endswith('s') else 'is'} used up first"


def _named(resource: str) -> str:
    return resource if resource.startswith("the ") else f"the {resource}"


def _use(row: Accepted) -> str:
    if row.used is None or row.at is None:
        return row.first or "no use was measured"
    resource = row.first or row.most_used
    return f"{resource} {percent(_share(row) or 0.0)} in use at {plural(row.at, 'job')}"


def answer_weak(asked: Asked) -> Answer:
    """Efficiency at the largest size of a problem that grows with it, and where it falls below 80 %."""
    factor = asked.of_role("scale")[0]
    curve = Curve.of(asked, factor, asked.measured())
    if len(curve.points) < 2:
        return Answer("weak scale", "A second size has to finish before its efficiency can be told.", "open")
    rows = [_efficiency(curve, i) for i in range(1, len(curve.points))]
    figures = tuple(
        Figure("efficiency", share, "1", *ends, where={factor.name: curve.points[i].parameters[factor.name]})
        for i, (share, ends) in enumerate(rows, 1)
    )
    share, ends = rows[-1]
    about = f" ({percent(ends[0])} to {percent(ends[1])})" if ends[0] is not None and ends[1] is not None else ""
    told = f"{percent(share)}{about}" if share <= 1 else f"full, nothing is lost{about}"
    size = level(factor, curve.points[-1].parameters[factor.name])
    fallen = _fallen([_below(asked, row) for row in rows])
    if fallen is None:  # it may fall and rise again: then all sizes are looked at together
        together = [_efficiency(curve, i, together=True) for i in range(1, len(curve.points))]
        fallen = next((i for i, row in enumerate(together, 1) if _below(asked, row)), None)
    held = strength(asked, curve.claims)
    missing = None
    where = "; it stays above 80 %"
    if fallen is not None:
        by = level(factor, curve.points[fallen].parameters[factor.name])
        where = f"; it falls below 80 % at {by}"
        figures += (Figure("falls below 80 %", curve.level(fallen), factor.plural),)
    elif all(_above(asked, row) for row in rows):
        figures += (Figure("stays above 80 %", curve.level(-1), factor.plural),)
    else:
        held, where = "open", "; whether it stays above 80 % cannot be told yet"
        missing = _line(asked, curve, share)
    why = explained(asked, curve.points[0], curve.points[-1]) if share < 1 else Explanation()
    sentence = f"Efficiency is {told} at {size}{where}{why.because if share < _EFFICIENT else ''}.{why.launch_sentence}"
    return Answer("weak scale", sentence, held, figures, why.all_causes, missing, curve.claims.scatter, why.parts)


def _line(asked: Asked, curve: Curve, share: float) -> Missing | None:
    """Repetitions that would tell the largest size's efficiency from the 80 % line."""
    if asked.published:
        return None
    ends = (curve.points[0], curve.points[-1])
    more = further(curve.claims, max(share / _EFFICIENT, _EFFICIENT / share), min(len(asked.values(p)) for p in ends))
    seconds = None if asked.trial_s is None else 2 * more * asked.trial_s
    names = levels(curve.factor, [p.parameters[curve.factor.name] for p in ends])
    return Missing(repetitions_words(more, names), tuple((p.parameters, more) for p in ends), seconds)


def _fallen(below: Sequence[bool]) -> int | None:
    """The smallest size from which on every larger one is below: tested from the largest down, each test is one of its own."""
    fallen = None
    for i in range(len(below), 0, -1):
        if not below[i - 1]:
            break
        fallen = i
    return fallen


_Ends = tuple[float | None, float | None]


def _efficiency(curve: Curve, i: int, *, together: bool = False) -> tuple[float, _Ends]:
    """(efficiency against the smallest size, its interval): the same time at every size, or work done in proportion to it."""
    slow, interval = curve.slowdown(i, 0)
    if not together:
        interval = curve.claims.planned_ratio(0, i) if curve.higher_is_better else curve.claims.planned_ratio(i, 0)
    ideal = curve.level(i) / curve.level(0) if curve.higher_is_better else 1.0
    if interval is None or not interval.low or not interval.high:
        return 1 / slow / ideal, (None, None)
    return 1 / slow / ideal, (1 / interval.high / ideal, 1 / interval.low / ideal)


def _below(asked: Asked, row: tuple[float, _Ends]) -> bool:
    share, (_, high) = row
    return share < _EFFICIENT if asked.published else high is not None and high < _EFFICIENT


def _above(asked: Asked, row: tuple[float, _Ends]) -> bool:
    share, (low, _) = row
    return share >= _EFFICIENT if asked.published else low is not None and low >= _EFFICIENT


def answer_point(asked: Asked) -> Answer:
    """Median, interval and scatter of a single point."""
    points = asked.measured()
    if not points:
        return Answer("one point", "No trial has finished.", "open")
    values = asked.values(points[0])
    grid = Grid(asked)
    scatter = grid.claims.scatter
    middle, interval = grid.typical(points[0]), grid.claims.value(0)
    typical = value(asked, middle, interval)
    if asked.published:
        figures: tuple[Figure, ...] = (Figure(asked.deciding.label, middle, asked.deciding.unit),)
        return Answer("one point", f"{typical}, printed without repetitions.", "printed", figures)
    if scatter is None:
        seconds = None if asked.trial_s is None else 4 * asked.trial_s
        missing = Missing("4 more repetitions", ((points[0].parameters, 4),), seconds)
        sentence = f"{typical}, measured once: how steady that is cannot be told."
        return Answer("one point", sentence, "open", missing=missing)
    ends = (None, None) if interval is None else (interval.low, interval.high)
    n = len(values)
    own = scatter.source == "repetitions"
    from_where = (
        f"{n} trials that scatter by" if own and n > 1 else f"{plural(n, 'trial')}; {scatter.source} scatter by"
    )
    figures = (
        Figure(asked.deciding.label, middle, asked.deciding.unit, *ends),
        Figure("scatter", scatter.sd, "share of the value"),
    )
    sentence = f"{typical}, from {from_where} {percent(scatter.sd)}."
    return Answer("one point", sentence, "firm" if own and n > 2 else "moderate", figures, (), None, scatter)
