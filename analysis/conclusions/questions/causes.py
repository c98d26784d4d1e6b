"""Causes in words: the parts of the change between two points that grew, the largest first. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from analysis.conclusions.answer import Cause, ChangePart
from analysis.conclusions.asked import Asked
from analysis.conclusions.observations.parts import LAUNCH, LEAST_SHARE, UNEXPLAINED, Division, division
from analysis.conclusions.wording import first_up
from analysis.numbers import amount, grouped
from analysis.scaling import Point

_CHART: Final = "where-time-goes"
_LAUNCH: Final = "launch overhead, outside of the program's own work"
_NAMES: Final[Mapping[str, str]] = {
    "computing": "computing",
    "descheduled": "descheduled: ranks had work and no core",
    "blocked": "blocked outside MPI: sleep, files or locks",
    "off": "off the processor outside MPI",
    "imbalance": "waiting in MPI for {busiest}, which computes longest",
    "communication": "in MPI",
    "on_cpu": "on the CPU",
    "off_cpu": "off the CPU",
    UNEXPLAINED: "not explained",
}
_WAITS: Final[Mapping[str, str]] = {
    "late_sender": "waits for late senders",
    "line_rate": "waits at line rate",
    "under_way": "waits for data under way",
    "retransmission": "waits for lost packets",
    "closed_window": "waits for a closed window",
    "receiver": "follows the last packet",
    "no_core": "waits for a rank without a core",
}
"""Words for a part of the time in MPI, by the causes of waits of a trace."""
_DIGITS: Final = 3
_MOST_OF_IT: Final = 0.5


@dataclass(frozen=True, slots=True)
class Explanation:
    """Causes of the longer time of a point. The launch overhead has a sentence of its own, and is a cause only of the elapsed time."""

    causes: tuple[Cause, ...] = ()
    launch: Cause | None = None
    parts: tuple[ChangePart, ...] = ()

    @property
    def because(self) -> str:
        """The largest cause as the end of a sentence; "" if there is none or the launch overhead is a larger one."""
        return "" if not self.causes or self._is_launch else f", {self.causes[0].statement}"

    @property
    def launch_sentence(self) -> str:
        """A sentence of its own, if the launch overhead grew by more than every other part."""
        return f" {first_up(self.launch.statement)}." if self.launch is not None and self._has_largest_launch else ""

    @property
    def all_causes(self) -> tuple[Cause, ...]:
        if self.launch is None:
            return self.causes
        return (self.launch, *self.causes) if self._is_launch else (*self.causes, self.launch)

    @property
    def _has_largest_launch(self) -> bool:
        largest = max((cause.explains or 0.0 for cause in self.causes), default=0.0)
        return self.launch is not None and (self.launch.explains or 0.0) > largest

    @property
    def _is_launch(self) -> bool:
        return self._has_largest_launch and any(part.name == LAUNCH for part in self.parts)


def explained(asked: Asked, good: Point, bad: Point, ideal: float = 1.0) -> Explanation:
    """Explain what ``bad`` takes longer than ``ideal`` times ``good``."""
    found = division(asked, good, bad, ideal)
    if found is None:
        return Explanation()
    causes = _causes(asked, found, bad, above=ideal != 1) if found.change_s > 0 else ()
    return Explanation(causes, _launch(found), (found.whole, *found.parts))


def _causes(asked: Asked, found: Division, bad: Point, *, above: bool) -> tuple[Cause, ...]:
    if not found.is_explained:
        return (_not_explained(found),)
    grown = [
        Cause(_words(asked, found, part, bad, above), part.change_s, "s", _CHART, part.name) for part in found.grown
    ]
    more_than_all = sum(part.change_s for part in found.grown) > found.change_s
    fallen = found.fallen if more_than_all else []
    less = [Cause(f"{_seconds(-p.change_s)} less {_name(p, bad)}", None, "s", _CHART) for p in fallen]
    return (*grown, *less) if grown else ()


def _not_explained(found: Division) -> Cause:
    """Set-up changed by so much that the parts of the window are not those of the program's own time."""
    missed_s = next(part.change_s for part in found.parts if part.name == UNEXPLAINED)
    words = f"{_seconds(abs(missed_s))} {'more' if missed_s < 0 else 'less'} of the ranks' time is outside of it"
    return Cause(f"not explained by the profile: {words}", None, "s", _CHART)


def _words(asked: Asked, found: Division, part: ChangePart, bad: Point, above: bool) -> str:
    """ "0.9 s of the 1.1 s more is in MPI", "1.2 s more in MPI" of a part that exceeds the whole; with its largest detail."""
    name = f"{_name(part, bad)}{_detail(found, part) if part.name == 'communication' else ''}"
    if part.change_s > found.change_s * (1 + 1e-9):
        return f"{_seconds(part.change_s)} more {name}"
    return f"{_seconds(part.change_s)} of {_of_the_whole(asked, found, above)} is {name}"


def _of_the_whole(asked: Asked, found: Division, above: bool) -> str:
    """Return the name of the divided time, if it is not the deciding metric itself."""
    whole = f"the {_seconds(found.change_s)}"
    if above:
        return f"{whole} above the ideal"
    if found.whole.name == asked.deciding.metric:
        return f"{whole} more"
    if found.whole.name == asked.own_time:
        return f"{whole} that its own loop takes longer"
    where = "the ranks take longer from MPI_Init to MPI_Finalize" if found.profiled else "the launch takes longer"
    return f"{whole} that {where}"


def _name(part: ChangePart, bad: Point) -> str:
    ranks = set(bad.values.get("mpi_busiest_rank", ()))
    busiest = f"rank {grouped(ranks.pop())}" if len(ranks) == 1 else "the rank"
    return _NAMES[part.name].format(busiest=busiest)


def _detail(found: Division, part: ChangePart) -> str:
    """The cause of waits that grew most, by a trace; else how much of the time in MPI was on CPU."""
    waits = [each for each in found.details if each.name in _WAITS and each.has_grown]
    largest = max(waits, key=lambda each: each.change_s, default=None)
    if largest is not None and largest.change_s >= _MOST_OF_IT * part.change_s:
        return f", {_seconds(min(largest.change_s, part.change_s))} of it {_WAITS[largest.name]}"
    on_cpu = next((each.change_s for each in found.details if each.name == "mpi_on_cpu"), None)
    if on_cpu is None:
        return ""
    return ", mostly on CPU (polling, copying)" if on_cpu >= _MOST_OF_IT * part.change_s else ", mostly blocked"


def _seconds(amount_s: float) -> str:
    return amount(amount_s, "s", _DIGITS)


def _launch(found: Division) -> Cause | None:
    """Launch overhead, if it grew by enough to matter to the launch."""
    launch = found.launch
    if launch is None or found.launch_change_s <= 0 or not launch.has_grown:
        return None
    if launch.change_s < LEAST_SHARE * found.launch_change_s:
        return None
    return Cause(f"{_LAUNCH}, takes {_seconds(launch.change_s)} more", launch.change_s, "s", _CHART, LAUNCH)
