"""Causes of a longer time: the parts that grew, the largest first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from analysis.conclusions.answer import Cause, ChangePart
from analysis.conclusions.context import ExperimentQuestion
from analysis.conclusions.observations.parts import (
    LAUNCH,
    LEAST_SHARE,
    UNEXPLAINED,
    Division,
    division,
    small_part,
)
from analysis.conclusions.sentences import causes as words
from analysis.scaling import Point

_CHART: Final = "where-time-goes"


@dataclass(frozen=True, slots=True)
class Explanation:
    """Causes of the longer time of a point.

    The launch overhead is a cause only of the elapsed time.
    """

    causes: tuple[Cause, ...] = ()
    launch: Cause | None = None
    parts: tuple[ChangePart, ...] = ()
    largest: str = ""
    """The largest cause in a few words."""
    compared: tuple[str, str] = ("", "")
    """Names of the two points of the parts: ("ideal from 1 host", "2 hosts")."""

    @property
    def because(self) -> str:
        """Return the end of a sentence: ": 0.9 s more in MPI"."""
        cause = self.largest
        if self.launch is not None and self._is_launch:
            cause = words.more_launch(self.launch.explains or 0.0)
        return f": {cause}" if cause else ""

    @property
    def all_causes(self) -> tuple[Cause, ...]:
        if self.launch is None:
            return self.causes
        return (self.launch, *self.causes) if self._is_launch else (*self.causes, self.launch)

    @property
    def _is_launch(self) -> bool:
        """Return whether the launch overhead is the largest of the parts.

        It is no part of a program's own time.
        """
        largest = max((cause.explains or 0.0 for cause in self.causes), default=0.0)
        is_largest = self.launch is not None and (self.launch.explains or 0.0) > largest
        return is_largest and any(part.name == LAUNCH for part in self.parts)


def explained(question: ExperimentQuestion, good: Point, bad: Point, ideal: float = 1.0) -> Explanation:
    """Explain what ``bad`` takes longer than ``ideal`` times ``good``."""
    if question.claims_only:
        return Explanation()
    if (share := small_part(question, good, bad)) is not None:
        because = Cause(words.of_small_part(question, bad, share), None, "s", _CHART)
        return Explanation((because,), largest=words.small_part(question, share))
    divided = division(question, good, bad, ideal)
    if divided is None:
        return Explanation()
    ideal_from = good if ideal != 1 else None
    causes = _causes(question, divided, bad, ideal_from) if divided.change_s > 0 else ()
    largest = words.NOT_EXPLAINED
    if divided.is_explained and divided.grown:
        largest = words.more(divided, divided.grown[0], bad, is_ideal=ideal_from is not None)
    return Explanation(
        causes,
        _launch(question, divided, bad),
        (divided.whole, *divided.parts),
        largest if causes else "",
        words.compared(question, good, bad, is_ideal=ideal != 1),
    )


def _causes(question: ExperimentQuestion, divided: Division, bad: Point, ideal_from: Point | None) -> tuple[Cause, ...]:
    """Return the causes of a change, perhaps above ideal scaling from a point."""
    if not divided.is_explained:
        missed_s = next(part.change_s for part in divided.parts if part.name == UNEXPLAINED)
        return (Cause(words.not_explained(missed_s), None, "s", _CHART),)
    fallen = divided.fallen if divided.exceeds_the_whole else ()
    outside_s = divided.outside_s
    return (
        *(
            Cause(words.grown(question, divided, p, bad, ideal_from), p.change_s, "s", _CHART, p.name)
            for p in divided.grown
        ),
        *(Cause(words.fallen(question, divided, p, bad), None, "s", _CHART) for p in fallen),
        *(
            [Cause(words.outside_loop(question, bad, outside_s), None, "s", _CHART)]
            if outside_s and divided.grown
            else ()
        ),
    )


def _launch(question: ExperimentQuestion, divided: Division, bad: Point) -> Cause | None:
    """Return the launch overhead if its growth matters to the launch."""
    launch = divided.launch
    if launch is None or divided.launch_change_s <= 0 or not launch.has_grown:
        return None
    if launch.change_s < LEAST_SHARE * divided.launch_change_s:
        return None
    statement = words.launch(question, bad, launch.change_s, is_profiled=divided.profiled)
    return Cause(statement, launch.change_s, "s", _CHART, LAUNCH)
