"""Where the time of a rank goes: computing, waiting for a core, waiting for messages; and start-up and end, outside of its work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from analysis.answers.answer import Cause
from analysis.answers.asked import Asked
from analysis.numbers import amount
from analysis.scaling import Point

_CHART: Final = "where-time-goes"
_TOLD: Final = 0.1
"""A part below this share of the whole is not worth a sentence."""
_NAMED: Final = {
    "core": "waiting for a core",
    "messages": "waiting for messages",
    "computing": "computing",
    "outside": "start-up and end, outside of the program's own loop",
}


@dataclass(frozen=True, slots=True)
class Parts:
    """Where the time of one rank goes, seconds; the four add up to the elapsed time."""

    computing: float
    core: float
    """Waiting for a core, where ranks share fewer cores: at least what the cores need for all ranks beyond one rank's share."""
    messages: float
    """Everything else: waiting for messages, and where the program states no time of its own, starting and ending."""
    outside: float = 0.0
    """Start-up and end: what the launch takes longer than the program's own time. 0 where it states none."""

    @property
    def elapsed(self) -> float:
        return self.computing + self.core + self.messages + self.outside


def parts(asked: Asked, point: Point) -> Parts | None:
    """Return the parts of a point's elapsed time; None where CPU time was not measured."""
    elapsed, cpu = point.median("elapsed_s"), point.median("cpu_mean_rank_s")
    if elapsed is None or cpu is None:
        return None
    own = point.median(asked.own_time) if asked.own_time else None
    within = elapsed if own is None else min(own, elapsed)
    used = point.median(asked.own_cpu_percent) if own is not None and asked.own_cpu_percent else None
    if used is not None:
        cpu = within * used / 100
    computing = min(cpu, within)
    ranks = point.ranks or 1
    shared = computing * ranks / asked.cores - computing if asked.cores and ranks > asked.cores else 0.0
    core = min(max(shared, 0.0), within - computing)
    return Parts(computing, core, within - computing - core, elapsed - within)


def _explained(asked: Asked) -> tuple[str, ...]:
    """The parts that the deciding metric holds: a figure of the program's own does not see its start-up and end."""
    return tuple(_NAMED) if asked.deciding.metric == "elapsed_s" or not asked.own_time else tuple(_NAMED)[:3]


def _whole(asked: Asked) -> str:
    """What the parts are parts of, where that is not the deciding metric itself."""
    if asked.deciding.metric in ("elapsed_s", asked.own_time):
        return "more"
    return "that its own loop takes longer" if asked.own_time else "that the launch takes longer"


def loss(asked: Asked, good: Point, bad: Point) -> tuple[Cause, ...]:
    """The parts by which one point takes longer than another, the largest first."""
    best, last = parts(asked, good), parts(asked, bad)
    if best is None or last is None:
        return ()
    more = {name: getattr(last, name) - getattr(best, name) for name in _explained(asked)}
    total = sum(more.values())
    if total <= 0:
        return ()
    grown = [(name, seconds) for name, seconds in _largest_first(more) if seconds >= _TOLD * total]
    fallen = [(name, -seconds) for name, seconds in more.items() if seconds <= -_TOLD * total]
    if fallen and len(grown) > 1:  # the grown ones are together more than the loss: none of them is a part of it
        told = [Cause(f"{amount(s, 's')} more of {_NAMED[name]}", s, "s", _CHART) for name, s in grown]
        return (*told, *(Cause(f"{amount(s, 's')} less of {_NAMED[name]}", None, "s", _CHART) for name, s in fallen))
    causes = []
    for name, seconds in grown:
        share = min(seconds, total)
        part = f"{amount(share, 's')} of the {amount(total, 's')} {_whole(asked)}" if seconds < total else "all of it"
        causes.append(Cause(f"{part} is {_NAMED[name]}", share, "s", _CHART))
    return tuple(causes)


def outside_lost(asked: Asked, good: Point, bad: Point) -> Cause | None:
    """What the launch loses besides, in start-up and end, where the deciding metric does not see it and it is worth telling."""
    best, last = parts(asked, good), parts(asked, bad)
    if best is None or last is None or "outside" in _explained(asked):
        return None
    more, launch = last.outside - best.outside, last.elapsed - best.elapsed
    if launch <= 0 or more < _TOLD * launch:
        return None
    return Cause(f"{_NAMED['outside']}, take {amount(more, 's')} more", more, "s", _CHART)


def gain_lost(asked: Asked, largest: Point) -> tuple[Cause, ...]:
    """What keeps the largest size from being ideal: its waiting, as a part of its time; start-up and end last."""
    last = parts(asked, largest)
    if last is None:
        return ()
    held = _explained(asked)
    time = sum(getattr(last, name) for name in held)
    waits = {name: getattr(last, name) for name in held if name != "computing"}
    causes = [
        Cause(f"{amount(s, 's')} of {amount(time, 's')} is {_NAMED[name]}", s, "s", _CHART)
        for name, s in _largest_first(waits)
        if s > _TOLD * time
    ]
    if "outside" not in held and last.outside > _TOLD * last.elapsed:
        launch = f"{amount(last.outside, 's')} of the {amount(last.elapsed, 's')} of the launch"
        causes.append(Cause(f"{launch} is {_NAMED['outside']}", last.outside, "s", _CHART))
    return tuple(causes)


def _largest_first(seconds: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(seconds.items(), key=lambda item: -item[1])
