"""Load tests: the jobs that each link carries, and the resource used up first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

from analysis.conclusions.answer import Answer, Cause, Figure, Missing, Strength
from analysis.conclusions.context import CAPACITY, Accepted, ExperimentQuestion
from analysis.conclusions.observations.grid import Grid
from analysis.conclusions.questions.strength import repeat, strength
from analysis.conclusions.sentences import answers as words
from analysis.numbers import amount, plural
from analysis.scaling import Point


def answer_load(asked: ExperimentQuestion) -> Answer:
    """Return the answer of a load test over links."""
    grid = Grid(asked)
    rows = [row for row in asked.accepted if row.jobs is not None or row.first is not None]
    if not rows:
        return Answer("load and network", words.NO_LINK, "open")
    ranges = [_decided(grid, row) for row in rows]
    figures = []
    for row, decided in zip(rows, ranges, strict=True):
        where = {CAPACITY: row.capacity_bps}
        low, high = row.between or (None, None)
        if decided is not None and row.between is None:
            low, high = decided.low, decided.high
        figures.append(Figure("carried", row.jobs, "jobs", low, high, where))
        figures.append(Figure("used up first", row.first, "", where=where))
        figures.append(Figure("use", row.share, "share", where=where))
        if row.is_arithmetic:
            figures.append(Figure("arithmetic limit", asked.load_factor, "jobs", where=where))
    causes = tuple(Cause(words.use(row), row.share, "share", "envelope") for row in rows)
    open_ends = [None if decided is None or decided.is_settled else (decided.low, decided.high) for decided in ranges]
    is_arithmetic = all(row.is_arithmetic for row in rows)
    certainty: Strength = strength(asked, grid.claims)
    if any(open_ends) or (certainty == "open" and not asked.published):
        certainty = "open" if all(open_ends) else "moderate"
    if is_arithmetic:
        certainty = "open"
    sentence = words.carried(rows, open_ends, is_arithmetic)
    missing = _decides(grid, rows, ranges)
    return Answer("load and network", sentence, certainty, tuple(figures), causes, missing, grid.claims.scatter)


def _loads(grid: Grid, row: Accepted) -> dict[float, Point]:
    jobs = next((f.name for f in grid.asked.of_role("load")), "")
    on_link = [p for p in grid.points if p.parameters.get(CAPACITY) == row.capacity_bps]
    return {load: p for p in on_link if (load := p.parameters.get(jobs)) is not None}


def _decides(grid: Grid, rows: Sequence[Accepted], ranges: Sequence[Decided | None]) -> Missing | None:
    """Return the repetitions that would decide the first undecided load."""
    for row, decided in zip(rows, ranges, strict=True):
        if decided is None or decided.is_settled or decided.low is None:
            continue
        here = _loads(grid, row)
        load = min(n for n in here if n > decided.low)
        beyond = exp(grid.cost(here[load]) - grid.cost(here[1])) / grid.asked.load_factor
        names = f"1 job and {plural(load, 'job')} on {amount(row.capacity_bps, 'bit/s')}"
        return repeat(grid.asked, grid.claims, (here[1], here[load]), max(beyond, 1 / beyond), names)
    return None


@dataclass(frozen=True, slots=True)
class Decided:
    """Loads accepted and refused whatever the scatter; settled if none is between."""

    low: float | None
    high: float | None
    is_settled: bool


def _decided(grid: Grid, row: Accepted) -> Decided | None:
    """Judge the rule by intervals of the wall times; None without repetitions."""
    here = _loads(grid, row)
    single, limit = here.get(1), grid.asked.load_factor
    if row.jobs is None or single is None or grid.asked.deciding.higher_is_better or grid.claims.scatter is None:
        return None
    accepted: list[float] = [1.0]
    refused: list[float] = []
    between: list[float] = []
    for load, point in here.items():
        if point is single:
            continue
        _, interval, _ = grid.compare(point, single)
        if interval is None or interval.low is None or interval.high is None:
            return None
        group = accepted if interval.high < limit else refused if interval.low >= limit else between
        group.append(float(load))
    high = min(refused, default=None)
    low = max(load for load in accepted if high is None or load < high)
    is_settled = not any(load > low and (high is None or load < high) for load in between)
    return Decided(min(low, row.jobs), high, is_settled)
