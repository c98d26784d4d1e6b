"""Studies: metric values of every repetition by configuration, with their facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any, Final, Literal, Protocol

import numpy as np

from analysis.statistics.summary import MINIMUM_REPETITIONS, Floats, Interval

Kind = Literal["strong", "weak", "throughput"]
"""Same work on more hosts; work that grows with the hosts; jobs that grow in number."""

CPU_METRICS: Final = ("cpu_mean_rank_s", "cpu_s")
"""CPU time in order of preference: per rank, or the sum over the ranks."""


DISTURBED: Final = "disturbed by other load"
"""Reason of an excluded trial if another one of its point is clean."""
NOT_STARTED: Final = "not started"
"""Reason of a trial that was cancelled before it started, by a user or a spent budget."""
_NEVER_COUNTED: Final = ("warm", "control", "without capture", "ideal network", DISTURBED, NOT_STARTED)


@dataclass(frozen=True, slots=True)
class Point:
    """One configuration.

    ``values`` maps a metric id (analysis.catalogue, or a workload's own such as ``water.pair_s``) to one value per counted
    trial, in the metric's unit. ``excluded`` counts the trials that are not in the values, by reason (warm-up, failed ...).
    ``flows`` are rows of ``FlowSet.flows()`` and the matrices those of ``CaptureAnalysis.matrices``, of one typical trial.
    """

    parameters: Mapping[str, Any]
    values: Mapping[str, Sequence[float]]
    ranks: int | None = None
    threads: int = 1
    """Threads of each rank."""
    excluded: Mapping[str, int] = field(default_factory=dict)
    trust: Mapping[str, int] = field(default_factory=dict)
    """Captures by TrustLevel."""
    trust_reasons: Sequence[str] = ()
    disturbed: int = 0
    """Counted trials that other load slowed: other programs, swapping, throttled processors.

    All or none, as a rule: if one is clean, the disturbed ones are excluded."""
    over_time: int = 0
    """Trials without a result that met their time limit: the values lack the slowest."""
    placement: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Findings about the placement of ranks (`analysis.mpi.placement`): a sentence of each counted trial that has it."""
    link_warnings: Sequence[str] = ()
    """Properties of the link outside of its certificate's tolerance."""
    link: Mapping[str, float] = field(default_factory=dict)
    """Link parameter -> what the certificate measured, in its base unit."""
    flows: Sequence[Mapping[str, Any]] = ()
    host_matrix: Mapping[str, Any] | None = None
    rank_matrix: Mapping[str, Any] | None = None
    order: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """Metric id -> place of each value's trial in the order in which the trials of the experiment ran; empty if unknown."""
    key: int = 0
    """Key of the configuration for the caller, or 0."""

    @property
    def lost(self) -> int:
        """Return the number of trials that should have counted.

        Warm-ups, control runs, disturbed trials and those that never started are excluded by design.
        """
        return sum(n for why, n in self.excluded.items() if not why.startswith(_NEVER_COUNTED))

    def outnumbers(self, cores: int | None) -> bool:
        """Return whether all ranks have more threads than these cores."""
        return bool(cores and self.ranks and self.ranks * self.threads > cores)

    def array(self, metric: str) -> Floats:
        """Return the values, shape (repetitions,); empty without the metric."""
        return np.asarray(self.values.get(metric, ()), dtype=np.float64)

    def median(self, metric: str) -> float | None:
        values = self.values.get(metric, ())
        return median(values) if len(values) else None  # numpy's takes ten times as long for a few values


@dataclass(frozen=True, slots=True)
class ProgramFile:
    """A file that counted trials ran, as an executable or script."""

    path: str
    sha256: str
    trials: int
    first: str
    """Time of the first of these trials, or an empty string."""


class AnswerIntervals(Protocol):
    """Intervals of a point's typical value, and of the ratio of two, or None."""

    def value(self, parameters: Mapping[str, Any]) -> Interval | None: ...
    def ratio(self, over: Mapping[str, Any], under: Mapping[str, Any]) -> Interval | None: ...


@dataclass(frozen=True, slots=True)
class Study:
    """One sweep.

    ``axis`` names the parameter that scales; its values are numbers (hosts, ranks, jobs).
    """

    points: Sequence[Point]
    name: str = ""
    published: bool = False
    """Values come from print: one per configuration, without a spread."""
    kind: Kind = "strong"
    axis: str = "hosts"
    time_metric: str = "elapsed_s"
    cores: int | None = None
    """Processors that the virtual hosts of one machine share; None if each has its own."""
    most_hosts: int | None = None
    """Hosts that the cluster has for one trial; None if unknown."""
    link_bandwidth_bps: float | None = None
    link_certified: bool = False
    """``link_bandwidth_bps`` was measured by a certificate, not only asked for."""
    link_made: bool = True
    """The network was built with the points' `link.bandwidth`; a real one has ``link_bandwidth_bps``, if known."""
    ranks_alike: bool = True
    """All ranks have the same work to do; False for a server and its clients, whose times and traffic differ by design."""
    capture_at: Literal["", "bridge", "host"] = ""
    changed_programs: Sequence[Sequence[ProgramFile]] = ()
    """Programs of which trials ran different files, with these files in the order of their first trials."""
    where: Mapping[str, Any] = field(default_factory=dict)
    """Values of the other swept parameters, in a slice of a larger sweep."""
    describe: Callable[[Point], str] | None = None
    """Names a point by its varying parameters, for studies whose sizes do not differ."""
    intervals: AnswerIntervals | None = None
    """The intervals of the experiment's answer, if it is about ``time_metric``."""

    @property
    def cpu_metric(self) -> str | None:
        """Return the CPU time metric of the points, or None."""
        return next((m for m in CPU_METRICS if any(len(p.array(m)) for p in self.points)), None)

    def sized(self, metric: str) -> list[tuple[float, Point]]:
        """Return (axis value, point) of the points with the metric, smallest first."""
        measured = [p for p in self.points if len(p.array(metric)) and _is_number(p.parameters.get(self.axis))]
        return sorted(((float(p.parameters[self.axis]), p) for p in measured), key=lambda pair: pair[0])

    def slices(self) -> list[Study]:
        """Return one study per combination of the other varying parameters.

        A parameter that has one value at every size goes with the axis (molecules in weak scaling) and makes no slice.
        """
        names = sorted({n for p in self.points for n in p.parameters if n != self.axis})
        varying = [n for n in names if not self._follows_axis(n)]
        if not varying:
            return [self]
        groups: dict[tuple[str, ...], list[Point]] = {}
        for point in self.points:
            groups.setdefault(tuple(repr(point.parameters.get(n)) for n in varying), []).append(point)
        return [self._slice(group, varying) for group in groups.values()]

    def _follows_axis(self, name: str) -> bool:
        values: dict[str, set[str]] = {}
        for point in self.points:
            values.setdefault(repr(point.parameters.get(self.axis)), set()).add(repr(point.parameters.get(name)))
        return all(len(distinct) == 1 for distinct in values.values())

    def _slice(self, points: list[Point], varying: list[str]) -> Study:
        where = {n: points[0].parameters.get(n) for n in varying}
        swept = where.get("link.bandwidth", self.link_bandwidth_bps)
        bandwidth = swept if self.link_made else self.link_bandwidth_bps
        return replace(self, points=points, where=where, link_bandwidth_bps=bandwidth)

    def bandwidth_of(self, point: Point) -> float | None:
        """Return the rate of the link at one point, bit/s; None if it is not known."""
        specified = point.parameters.get("link.bandwidth") if self.link_made else None
        return self.link_bandwidth_bps or specified

    def may_claim(self, *points: Point, metric: str) -> bool:
        """Return whether these points have enough repetitions for a claim."""
        fewest = min((len(p.array(metric)) for p in points), default=0)
        return fewest >= (1 if self.published else MINIMUM_REPETITIONS)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
