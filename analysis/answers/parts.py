"""Where the time of a rank goes: computing, waiting for a core, waiting for messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from analysis.answers.answer import Cause
from analysis.answers.asked import Asked
from analysis.numbers import amount
from analysis.scaling import Point


@dataclass(frozen=True, slots=True)
class Parts:
    """Where the time of one rank goes, seconds; the three add up to the elapsed time."""

    computing: float
    core: float
    """Waiting for a core, where ranks share fewer cores: at least what the cores need for all ranks beyond one rank's share."""
    messages: float
    """Everything else: waiting for messages, starting and ending."""


def parts(asked: Asked, point: Point) -> Parts | None:
    """Return the parts of a point's elapsed time; None where CPU time was not measured."""
    elapsed, cpu = point.median("elapsed_s"), point.median("cpu_mean_rank_s")
    if elapsed is None or cpu is None:
        return None
    computing = min(cpu, elapsed)
    ranks = point.ranks or 1
    shared = cpu * ranks / asked.cores - cpu if asked.cores and ranks > asked.cores else 0.0
    core = min(max(shared, 0.0), elapsed - computing)
    return Parts(computing, core, elapsed - computing - core)


_NAMED: Final = {
    "core": "waiting for a core",
    "messages": "waiting for messages",
    "computing": "computing",
}


def loss(asked: Asked, good: Point, bad: Point) -> tuple[Cause, ...]:
    """The parts by which one point takes longer than another, the largest first."""
    best, last = parts(asked, good), parts(asked, bad)
    if best is None or last is None:
        return ()
    more = {name: getattr(last, name) - getattr(best, name) for name in _NAMED}
    total = sum(more.values())
    if total <= 0:
        return ()
    causes = []
    for name, seconds in sorted(more.items(), key=lambda item: -item[1]):
        if seconds < 0.1 * total:
            continue
        share = min(seconds, total)
        more_of = "more" if asked.deciding.metric == "elapsed_s" else "that the launch takes longer"
        part = f"{amount(share, 's')} of the {amount(total, 's')} {more_of}" if seconds < total else "all of it"
        causes.append(Cause(f"{part} is {_NAMED[name]}", share, "s", "where-time-goes"))
    return tuple(causes)


def gain_lost(asked: Asked, largest: Point) -> tuple[Cause, ...]:
    """What keeps the largest size from being ideal: its waiting, as a part of its time."""
    last = parts(asked, largest)
    if last is None:
        return ()
    elapsed = last.computing + last.core + last.messages
    waits = {name: getattr(last, name) for name in ("core", "messages")}
    return tuple(
        Cause(f"{amount(s, 's')} of {amount(elapsed, 's')} is {_NAMED[name]}", s, "s", "where-time-goes")
        for name, s in sorted(waits.items(), key=lambda item: -item[1])
        if s > 0.1 * elapsed
    )
