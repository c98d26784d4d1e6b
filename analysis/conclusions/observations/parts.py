"""Division of the ranks' time: by the MPI profile, else by CPU time. Pure.

With U_i the time of rank i outside MPI, W the window from MPI_Init to MPI_Finalize and b the busiest rank (largest U_i),

    W = mean computing + (computing of b - mean) + descheduled of b + blocked of b + (W - U_b).

The second term is the imbalance: all other ranks wait for it in MPI. The last one is communication (POP: 1 - communication efficiency).
A rank that waits in MPI for a descheduled rank waits for a core too: run delay inside MPI counts as descheduled, up to the
run delay outside MPI of all other ranks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from statistics import median
from typing import Final

import numpy as np
import scipy  # special is loaded when first used

from analysis.conclusions.answer import ChangePart
from analysis.conclusions.context import ExperimentQuestion
from analysis.mpi.wait_sums import CAUSES
from analysis.scaling import Point
from analysis.statistics.summary import MINIMUM_REPETITIONS, Floats, welch

LAUNCH: Final = "launch"
CRITICAL_PATH: Final = ("chain_volume_s", "chain_latency_s")
"""Times that the longest chain of messages requires of the links."""
CALLS: Final = (
    *("mpi_point_to_point_share", "mpi_collective_share", "mpi_synchronisation_share"),
    *("mpi_waiting_share", "mpi_one_sided_share", "mpi_input_output_share"),
)
"""Shares of the time in MPI by kind of call; Division.details has their seconds."""
UNEXPLAINED: Final = "unexplained"
LEAST_SHARE: Final = 0.1
"""Smallest share of the whole that a cause needs."""
_SAME_WORK: Final = 0.5
"""A figure in seconds that is a smaller share of the window times something else (one message, the last step)."""
_DIVIDING: Final = (
    *("mpi_busiest_computing_s", "mpi_busiest_descheduled_s", "mpi_descheduled_share", "mpi_descheduled_inside_share"),
)
"""Metrics that divide the time outside MPI; all but the first need a kernel that counts run delay."""
_LEVEL: Final = 0.95
_WINDOW: Final = "mpi_window_s"
ELAPSED: Final = "elapsed_s"


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of every trial of a point: parts of ``whole``, perhaps ``launch``."""

    parts: Mapping[str, Floats]
    whole: Floats
    launch: Floats | None
    details: Mapping[str, Floats]
    """Division of the time in MPI: on CPU, blocked, kinds of calls, causes of waits of a trace, and waits for CPU cores."""


@dataclass(frozen=True, slots=True)
class Division:
    """The change of a time from one point to another, by parts."""

    whole: ChangePart
    """Named by its metric."""
    parts: tuple[ChangePart, ...]
    """Add up to the whole; the last one is the unexplained remainder."""
    launch: ChangePart | None
    """Launch overhead; one of the parts only if the elapsed time is divided."""
    launch_change_s: float
    details: tuple[ChangePart, ...]
    profiled: bool
    undivided: ChangePart | None = None
    """The change of the program's own time, if the window is divided in its place."""
    has_grown_outside: bool = False
    """With ``undivided``: the time outside the program's own measurably grew."""

    @property
    def change_s(self) -> float:
        return self.whole.change_s

    def part(self, name: str) -> ChangePart | None:
        return next((part for part in self.parts if part.name == name), None)

    @property
    def is_explained(self) -> bool:
        """Return whether the parts explain more than half of the change."""
        missed = self.part(UNEXPLAINED)
        return missed is None or abs(missed.change_s) < abs(self.change_s) / 2

    @property
    def outside_s(self) -> float:
        """Return the growth outside the program's own time that the parts contain.

        0 if it may be scatter.
        """
        if self.undivided is not None:
            return max(self.change_s - self.undivided.change_s, 0.0) if self.has_grown_outside else 0.0
        missed = self.part(UNEXPLAINED)
        contained = self.profiled and self.whole.name not in (ELAPSED, _WINDOW)
        has_grown = contained and missed and missed.change_s < 0 and not _may_be_zero(missed)
        return -missed.change_s if has_grown and missed and self._matters(missed) else 0.0

    @property
    def exceeds_the_whole(self) -> bool:
        """Return whether the parts that grew are more than the change."""
        return sum(part.change_s for part in self.grown) > self.change_s * (1 + 1e-9)

    @property
    def grown(self) -> list[ChangePart]:
        """Return the parts that measurably grew, the largest first, without launch.

        They end at the first that may be scatter: a smaller one that surely grew is not the cause.
        """
        candidates = [part for part in self.parts if self._matters(part) and part.change_s > 0]
        surely = takewhile(lambda part: part.has_grown, sorted(candidates, key=lambda part: -part.change_s))
        return [part for part in surely if part.name != LAUNCH]

    @property
    def fallen(self) -> list[ChangePart]:
        """Return the parts that fell by enough to matter, the largest first."""
        candidates = [part for part in self.parts if part.name not in (LAUNCH, UNEXPLAINED) and self._matters(part)]
        return sorted((part for part in candidates if part.change_s < 0), key=lambda part: part.change_s)

    def _matters(self, part: ChangePart) -> bool:
        return abs(part.change_s) >= LEAST_SHARE * abs(self.change_s)


def division(question: ExperimentQuestion, good: Point, bad: Point, ideal: float = 1.0) -> Division | None:
    """Divide the excess of ``bad`` over ``ideal`` times ``good``; None without data.

    A loop that is a small part of a longer window cannot be divided by the profile: then the window is.
    """
    profiled = all(len(point.array(_WINDOW)) for point in (good, bad))
    metric = _divided_metric(question, good, bad, profiled=profiled)
    divided = _of_metric(question, metric, good, bad, ideal, profiled=profiled)
    if divided is None or divided.is_explained or metric == _WINDOW:
        return divided
    of_window = _of_metric(question, _WINDOW, good, bad, ideal, profiled=profiled)
    if of_window is None or of_window.change_s <= 0 or not of_window.is_explained:
        return divided
    missed = divided.part(UNEXPLAINED)
    has_grown = missed is not None and missed.change_s < 0 and not _may_be_zero(missed)
    return replace(of_window, undivided=divided.whole, has_grown_outside=has_grown)


def _may_be_zero(part: ChangePart) -> bool:
    return part.low_s is not None and part.high_s is not None and part.low_s <= 0 <= part.high_s


def small_part(question: ExperimentQuestion, good: Point, bad: Point) -> float | None:
    """Return the share of the window that the deciding metric measures, if small.

    The parts of the window's change are no causes then: they may be in the rest of the run.
    """
    part = question.measured_part
    if part is None:
        return None
    shares = []
    for point in (good, bad):
        window, measured = point.median(_WINDOW) or point.median(ELAPSED), point.median(part.metric)
        shares += [] if not window or not measured else [measured / window]
    return shares[-1] if shares and min(shares) < _SAME_WORK else None


def _of_metric(
    question: ExperimentQuestion, metric: str, good: Point, bad: Point, ideal: float, *, profiled: bool
) -> Division | None:
    dividing = [name for name in _DIVIDING if all(len(point.array(name)) for point in (good, bad))]
    before, after = (
        _by_profile(point, metric, dividing) if profiled else _by_cpu_time(question, point, metric)
        for point in (good, bad)
    )
    if before is None or after is None or before.parts.keys() != after.parts.keys():
        return None
    parts = [_changed(name, before.parts[name], after.parts[name], ideal) for name in after.parts]
    whole = _changed(metric, before.whole, after.whole, ideal)
    launch = None
    if before.launch is not None and after.launch is not None:
        launch = _changed(LAUNCH, before.launch, after.launch, ideal)
    rest = _unexplained(whole, parts, before, after, ideal)
    details = [_changed(n, before.details[n], after.details[n], ideal) for n in after.details if n in before.details]
    for name in CRITICAL_PATH:  # an absent one at the shorter point: no message crossed a link
        if (last := bad.median(name)) is not None:
            first = ideal * (good.median(name) or 0.0)
            details.append(ChangePart(name, first, last, last - first))
    longer = (bad.median(ELAPSED) or 0.0) - ideal * (good.median(ELAPSED) or 0.0)
    return Division(whole, (*parts, rest), launch, longer, tuple(details), profiled)


def _divided_metric(question: ExperimentQuestion, good: Point, bad: Point, *, profiled: bool) -> str:
    """Return the divided time: the deciding one, the program's own, or the window."""
    deciding = question.deciding
    if deciding.metric == ELAPSED:
        return ELAPSED
    within = _WINDOW if profiled else ELAPSED
    is_time = deciding.unit == "s" and not deciding.higher_is_better
    if is_time and all(_times_the_run(point, deciding.metric, within) for point in (good, bad)):
        return deciding.metric
    if question.own_time and all(len(point.array(question.own_time)) for point in (good, bad)):
        return question.own_time
    return within


def _times_the_run(point: Point, metric: str, within: str) -> bool:
    part, whole = point.median(metric), point.median(within)
    return bool(part and whole) and (part or 0.0) >= _SAME_WORK * (whole or 0.0)


def _by_cpu_time(question: ExperimentQuestion, point: Point, metric: str) -> Times | None:
    used_metric = (
        question.own_cpu_percent if metric == question.own_time and len(point.array(question.own_cpu_percent)) else ""
    )
    own_metric = question.own_time if metric == ELAPSED and len(point.array(question.own_time)) else metric
    arrays = _aligned(point, ELAPSED, own_metric, used_metric or "cpu_mean_rank_s")
    if arrays is None:
        return None
    elapsed, within, cpu = arrays
    within = np.minimum(within, elapsed)
    on_cpu = np.minimum(within * cpu / 100 if used_metric else cpu, within)
    parts = {"on_cpu": on_cpu, "off_cpu": within - on_cpu}
    launch = elapsed - within if own_metric != ELAPSED else None
    if metric == ELAPSED and launch is not None:
        return Times({**parts, LAUNCH: launch}, elapsed, launch, {})
    return Times(parts, within, launch, {})


def _by_profile(point: Point, metric: str, dividing: Sequence[str]) -> Times | None:
    shares = _aligned(point, _WINDOW, "mpi_useful_share", "mpi_no_core_share", "mpi_useful_max_rank_s", metric)
    if shares is None:
        return None
    window, useful, off, most, whole = shares
    parts = _of_window(point, dividing, window, window * useful, window * off, np.minimum(most, window))
    elapsed = _aligned(point, _WINDOW, ELAPSED)
    launch = None if elapsed is None else np.maximum(elapsed[1] - elapsed[0], 0.0)
    if metric == ELAPSED and launch is not None:
        parts = {**parts, LAUNCH: launch}
    return Times(parts, whole, launch, _details(point) | _core_details(point, parts, window - np.minimum(most, window)))


def _core_details(point: Point, parts: Mapping[str, Floats], in_mpi: Floats) -> dict[str, Floats]:
    """Return the run delay inside MPI: what counts as descheduled, and the remainder."""
    if "descheduled" not in parts:
        return {}
    core_in_mpi = in_mpi - parts["communication"]
    inside = _aligned(point, _WINDOW, "mpi_descheduled_inside_share")
    remainder = {} if inside is None else {"mpi_descheduled": inside[0] * inside[1] - core_in_mpi}
    return {"core_in_mpi": core_in_mpi, **remainder}


def _of_window(
    point: Point, dividing: Sequence[str], window: Floats, computing: Floats, off: Floats, most: Floats
) -> dict[str, Floats]:
    """Return the terms of the equation at the top, seconds.

    ``dividing`` are the metrics of _DIVIDING that both points have.
    """
    rest = window - most
    measured = _aligned(point, _WINDOW, *dividing) or []
    if not dividing:  # a profile of an older version
        return {"computing": computing, "off": off, "imbalance": most - computing - off, "communication": rest}
    imbalance, off_most = measured[1] - computing, most - measured[1]
    if len(dividing) < len(_DIVIDING):
        return {"computing": computing, "off": off_most, "imbalance": imbalance, "communication": rest}
    descheduled, outside, inside = measured[2], window * measured[3], window * measured[4]
    of_others = np.minimum(np.minimum(inside, (max(point.ranks or 1, 1) - 1) * outside), np.maximum(rest, 0.0))
    return {
        "computing": computing,
        "descheduled": descheduled + of_others,
        "blocked": off_most - descheduled,
        "imbalance": imbalance,
        "communication": rest - of_others,
    }


def _details(point: Point) -> dict[str, Floats]:
    """Return divisions of the time in MPI: on CPU, blocked, calls, causes of waits."""
    details = {}
    states = (("mpi_on_cpu", "mpi_on_cpu_share"), ("mpi_blocked", "mpi_blocked_share"))
    for name, metric in (*states, *((metric, metric) for metric in CALLS)):
        if (of_window := _aligned(point, _WINDOW, metric)) is not None:
            details[name] = of_window[0] * of_window[1]
    waits = _aligned(point, _WINDOW, "mpi_wait_share")
    for cause in CAUSES if waits is not None else ():
        if (of_waits := _aligned(point, _WINDOW, "mpi_wait_share", f"mpi_wait_{cause}_share")) is not None:
            details[cause] = of_waits[0] * of_waits[1] * of_waits[2]
    return details


def _aligned(point: Point, *metrics: str) -> list[Floats] | None:
    """Return one array per metric, one value per trial; None if a metric is absent.

    Arrays of different lengths are replaced by their medians.
    """
    arrays = [point.array(metric) for metric in metrics]
    if not all(len(array) for array in arrays):
        return None
    if len({len(array) for array in arrays}) > 1:
        return [np.array([np.median(array)]) for array in arrays]
    return arrays


def _changed(name: str, before: Floats, after: Floats, ideal: float) -> ChangePart:
    # numpy's median takes ten times as long for a few values
    return _within(name, ideal * median(before.tolist()), median(after.tolist()), ideal * before, after)


def _within(name: str, first: float, last: float, before: Floats, after: Floats) -> ChangePart:
    """Return the change from first to last with Welch's interval, widened to hold it.

    Two trials have none: with one degree of freedom it spans 25 standard errors and would hide every cause.
    """
    change = last - first
    if min(len(before), len(after)) < MINIMUM_REPETITIONS:
        return ChangePart(name, first, last, change)
    mean, error, freedom = welch(after, before)
    two_sided, one_sided = (
        float(scipy.special.stdtrit(freedom, level)) * error for level in ((1 + _LEVEL) / 2, _LEVEL)
    )
    least = min(mean - one_sided, change)
    return ChangePart(name, first, last, change, min(mean - two_sided, change), max(mean + two_sided, change), least)


def _unexplained(
    whole: ChangePart, parts: Sequence[ChangePart], before: Times, after: Times, ideal: float
) -> ChangePart:
    """Return the remainder between the whole and the sum of its parts."""
    values = [times.whole - sum(times.parts.values()) for times in (before, after)]
    first = whole.before_s - sum(part.before_s for part in parts)
    last = whole.after_s - sum(part.after_s for part in parts)
    return _within(UNEXPLAINED, first, last, ideal * values[0], values[1])
