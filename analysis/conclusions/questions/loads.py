"""Load tests: the jobs that each link carries, and the resource used up first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, log

from analysis.conclusions.answer import Answer, Cause, Figure, Missing, Strength
from analysis.conclusions.context import CAPACITY, Accepted, ExperimentQuestion
from analysis.conclusions.observations.grid import Grid
from analysis.conclusions.questions.strength import compared, repeat, strength
from analysis.conclusions.sentences import answers as words
from analysis.scaling import Point


def answer_load(question: ExperimentQuestion) -> Answer:
    """Return the answer of a load test over links."""
    grid = Grid(question)
    rows = [row for row in question.accepted if row.jobs is not None or row.first is not None]
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
            figures.append(Figure("arithmetic limit", question.load_factor, "jobs", where=where))
    causes = tuple(Cause(words.use(row), row.share, "share", "envelope") for row in rows)
    open_ends = [None if decided is None or decided.is_settled else (decided.low, decided.high) for decided in ranges]
    is_arithmetic = all(row.is_arithmetic for row in rows)
    certainty: Strength = strength(question, grid.claims)
    if any(open_ends) or (certainty == "open" and not question.published):
        certainty = "open" if all(open_ends) else "moderate"
    if is_arithmetic:
        certainty = "open"
    sentence = words.carried(rows, open_ends, is_arithmetic)
    missing = _decides(grid, rows, ranges)
    return Answer("load and network", sentence, certainty, tuple(figures), causes, missing, grid.claims.scatter)


def _loads(grid: Grid, row: Accepted) -> dict[float, Point]:
    jobs = next((f.name for f in grid.question.of_role("load")), "")
    on_link = [p for p in grid.points if p.parameters.get(CAPACITY) == row.capacity_bps]
    return {load: p for p in on_link if (load := p.parameters.get(jobs)) is not None}


def _decides(grid: Grid, rows: Sequence[Accepted], ranges: Sequence[Decided | None]) -> Missing | None:
    """Return the repetitions that would decide all undecided loads."""
    pairs = []
    for row, decided in zip(rows, ranges, strict=True):
        if decided is None or decided.is_settled or decided.low is None:
            continue
        here, last = _loads(grid, row), inf if decided.high is None else decided.high
        between = [point for load, point in here.items() if decided.low < load < last]
        pairs += [compared(grid, here[1], point, offset=-log(grid.question.load_factor)) for point in between]
    return repeat(grid, pairs)


@dataclass(frozen=True, slots=True)
class Decided:
    """Loads accepted and refused whatever the scatter; settled if none is between."""

    low: float | None
    high: float | None
    is_settled: bool


def _decided(grid: Grid, row: Accepted) -> Decided | None:
    """Judge the rule by intervals of the wall times; None without repetitions."""
    here = _loads(grid, row)
    single, limit = here.get(1), grid.question.load_factor
    if row.jobs is None or single is None or grid.question.deciding.higher_is_better or grid.claims.scatter is None:
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
