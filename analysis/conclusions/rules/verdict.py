"""The answer in one sentence: does it scale, where does it stop, or why can that not be told."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

import numpy as np

from analysis.conclusions.observations.reading import Reading
from analysis.conclusions.wording import percent, size_range, sizes, times
from analysis.numbers import amount, significant
from analysis.statistics import detectable_difference

Class = Literal["scales", "limited", "unclear", "failed"]
_EFFICIENT: Final = 0.5
"""Below this share of the ideal, more than half of what the added hosts cost is lost."""
_WEAK_EFFICIENT: Final = 0.8


@dataclass(frozen=True, slots=True)
class Verdict:
    """Class, one or two sentences, and the size to use (None where it cannot be told)."""

    verdict: Class
    sentence: str
    best_size: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def judge(reading: Reading) -> Verdict:
    """The verdict of one slice of a study."""
    axis = reading.axis
    if not reading.times:
        failed = any(p.lost for p in reading.study.points)
        sentence = "No trial finished, so there is nothing to judge." if failed else "No trial has been counted yet."
        return Verdict("failed" if failed else "unclear", sentence)
    if len({t.size for t in reading.times}) < 2:
        return Verdict(
            "unclear", f"Only {sizes(reading.times[0].size, axis)} measured: nothing can be said about scaling."
        )
    if not reading.repeated():
        return Verdict("unclear", f"Too few repetitions to tell where scaling stops: {_leaning(reading)}.")
    if not reading.moves(reading.study.time_metric):
        return Verdict("unclear", _no_change(reading))
    return _weak(reading) if reading.study.kind == "weak" else _strong(reading)


def _leaning(reading: Reading) -> str:
    best = reading.best
    assert best is not None  # noqa: S101  (times are not empty)
    return f"the shortest time so far is {amount(best.median, 's')} at {sizes(best.size, reading.axis)}"


def _no_change(reading: Reading) -> str:
    """No clear change, and how small a one could have been seen."""
    first, last = reading.times[0].size, reading.times[-1].size
    values = [t.point.array(reading.study.time_metric) for t in reading.times]
    spread = float(np.sqrt(np.mean([v.var(ddof=1) / v.mean() ** 2 for v in values if len(v) > 1])))
    visible = detectable_difference(spread, min(len(v) for v in values))
    seen = f" Differences below about {percent(visible)} could not have been seen." if visible else ""
    return f"No clear change of elapsed time from {significant(first)} to {sizes(last, reading.axis)}.{seen}"


def _strong(reading: Reading) -> Verdict:
    best, axis, metric = reading.best, reading.axis, reading.study.time_metric
    assert best is not None  # noqa: S101
    first, last = reading.times[0], reading.times[-1]
    row = next(r for r in reading.rows if r.size == best.size)
    if best is last or not reading.larger(metric, last, best):
        return _no_turn(reading)
    if best is first:
        sentence = (
            f"More {axis} never helped: elapsed time is shortest at {sizes(first.size, axis)}, the fewest measured, "
            f"and {percent(last.median / first.median - 1)} longer at {sizes(last.size, axis)}."
        )
        return Verdict("limited", sentence, best.size)
    sentence = (
        f"Scaling stops at {sizes(best.size, axis)}: {amount(best.median, 's')}, {times(row.speedup.value)} as fast as "
        f"{sizes(first.size, axis)}. Elapsed time is {percent(last.median / best.median - 1)} longer at {sizes(last.size, axis)}"
        f"{_while_computing(reading, best.size, last.size)}."
    )
    return Verdict("limited", sentence, best.size)


def _while_computing(reading: Reading, best: float, last: float) -> str:
    at = {c.size: c.median for c in reading.cpu}
    if best in at and last in at and at[last] < at[best] and reading.moves(reading.study.cpu_metric or ""):
        return f", although CPU time per rank falls {percent(1 - at[last] / at[best])}"
    return ""


def _no_turn(reading: Reading) -> Verdict:
    """Time falls, or at least does not rise again, up to the largest size."""
    axis, metric = reading.axis, reading.study.time_metric
    first, last, row = reading.times[0], reading.times[-1], reading.rows[-1]
    if not reading.larger(metric, first, last):
        same = [
            t.size for t in reading.times if t is not reading.best and not reading.larger(metric, t, reading.best or t)
        ]
        return Verdict(
            "limited",
            f"More {axis} did not make it measurably faster from {significant(first.size)} to {sizes(last.size, axis)}"
            f"{f'; {size_range(same, axis)} cannot be told from the best' if same else ''}.",
            reading.best.size if reading.best else None,
        )
    got = (
        f"{times(row.speedup.value)} as fast on {sizes(last.size, axis)} as on {sizes(first.size, axis)}, "
        f"{percent(row.efficiency.value)} of the ideal"
    )
    if row.efficiency.value >= _EFFICIENT:
        return Verdict("scales", f"It scales to {sizes(last.size, axis)}, the most measured: {got}.", last.size)
    flat = next(t for t in reading.times if not reading.larger(metric, t, last))
    until = (
        f"Up to {sizes(last.size, axis)} time still falls"
        if flat is last
        else (f"Scaling flattens at {sizes(flat.size, axis)}: beyond them time does not fall measurably")
    )
    return Verdict("limited", f"{until}, but most of the added {axis} is lost: {got}.", flat.size)


def _weak(reading: Reading) -> Verdict:
    row, axis = reading.rows[-1], reading.axis
    scales = row.efficiency.value >= _WEAK_EFFICIENT
    sentence = (
        f"With work that grows with the {axis}, {percent(row.efficiency.value)} of the efficiency is left at {sizes(row.size, axis)}"
        f" ({amount(row.elapsed.median, 's')} against {amount(reading.rows[0].elapsed.median, 's')})."
    )
    return Verdict("scales" if scales else "limited", sentence, row.size if scales else None)
