"""Question of an experiment's design: factors, deciding metric, kind of sweep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from analysis.conclusions.observations.scatter import Scatter, SimultaneousIntervals
from analysis.numbers import SECONDS
from analysis.scaling import Point, ProgramFile
from analysis.search import Result, Settings, key_of

Role = Literal["scale", "network", "load", "message", "treatment"]
QuestionKind = Literal[
    "scale", "weak scale", "scale and treatment", "network", "load and network", "steps", "message size", "growth",
    "treatment", "one point", "best settings",
]  # fmt: skip
EQUAL: Final = 1.25
"""Points that could differ by more than this are not called equal, unless the experiment says otherwise."""
_SIZES: Final[tuple[Role, ...]] = ("scale", "load", "message")
"""Choices are compared at every size of one of these, never across sizes."""
CAPACITY: Final = "link.bandwidth"
ASKS: Final[Mapping[QuestionKind, str]] = {
    "scale": "Where should I stop, and why?",
    "weak scale": "Does it keep its efficiency?",
    "scale and treatment": "Does the best choice change with scale?",
    "network": "What does the program need from the network?",
    "load and network": "How much load does each link carry, and what is used up first?",
    "steps": "Which change paid, and how far from the limit?",
    "message size": "What are latency and bandwidth, and where do they turn?",
    "growth": "How does it grow with the problem?",
    "treatment": "Which choice is best, and by how much?",
    "one point": "How fast, and how steady?",
    "best settings": "Which settings are best, and by how much?",
}


@dataclass(frozen=True, slots=True)
class Deciding:
    """The metric by which points are better or worse."""

    metric: str
    label: str
    unit: str
    higher_is_better: bool = False

    @property
    def seconds(self) -> float | None:
        """Return the seconds of its unit; None if it is no time that is better short."""
        return None if self.higher_is_better else SECONDS.get(self.unit)


@dataclass(frozen=True, slots=True)
class Factor:
    """A swept parameter.

    ``unit`` is the base unit of its values ("s", "bit/s", "B", "share"), "" for counts and words.
    """

    name: str
    label: str
    role: Role
    unit: str = ""
    plural: str = ""
    """Noun that its values count ("hosts", "jobs"); empty for other values."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """Load that one link carries; ``first`` is the resource used up first, or None."""

    capacity_bps: float
    jobs: float | None
    between: tuple[float, float] | None
    """The measured loads between which ``jobs`` was interpolated."""
    beyond_measured: bool
    first: str | None
    used: float | None
    """Its use at ``at`` jobs; that of the most used resource if ``first`` is None."""
    at: float | None
    most_used: str = ""

    @property
    def is_arithmetic(self) -> bool:
        """Return whether one job alone uses up a resource.

        Then n jobs take n times as long, whatever the capacity.
        """
        return self.first is not None and self.at == 1

    @property
    def share(self) -> float | None:
        """Return the use of the resource, at most 1.

        Contents and headers are measured separately and can add up to a little more.
        """
        return None if self.used is None else min(self.used, 1.0)


@dataclass(frozen=True, slots=True)
class Searched:
    """The results of a search for the best settings: they choose, and prove nothing."""

    start: Settings
    """The starting settings."""
    results: Sequence[Result]
    """In the order of the trials."""

    def is_start(self, parameters: Mapping[str, Any]) -> bool:
        return all(parameters.get(name) == value for name, value in self.start.items())

    def ranked(self, *, higher_is_better: bool) -> list[Result]:
        """Return the results with a value, best first."""
        measured = [result for result in self.results if result.value is not None]
        return sorted(measured, key=lambda result: float(result.value or 0.0), reverse=higher_is_better)

    def best(self, *, higher_is_better: bool) -> Result | None:
        return next(iter(self.ranked(higher_is_better=higher_is_better)), None)

    def looked(self, parameters: Mapping[str, Any], *, higher_is_better: bool) -> float | None:
        """Return the gain of settings over the start, as the search measured both."""
        values = {key_of(result.settings): result.value for result in self.results}
        settings = {name: parameters.get(name) for name in self.start}
        value, start = values.get(key_of(settings)), values.get(key_of(self.start))
        if not value or not start:
            return None
        return value / start if higher_is_better else start / value


@dataclass(frozen=True, slots=True)
class ExperimentQuestion:
    """The question of one experiment. All values of the deciding metric are positive."""

    points: Sequence[Point]
    deciding: Deciding
    factors: Sequence[Factor]
    published: bool = False
    weak: bool = False
    steps: bool = False
    """The points are a tuning ladder: settings that are changed one after another."""
    prior: Scatter | None = None
    """Scatter of warm-ups, control runs or history, for points that were measured once."""
    load_test: bool = False
    """The design compares one job with more on a link, measured or planned."""
    accepted: Sequence[Accepted] = ()
    load_factor: float = 10.0
    peak: float | None = None
    """Upper bound of the deciding metric, in its unit."""
    against: tuple[str, str] | None = None
    """(choice, baseline) if the deciding metric is the ratio of the two."""
    also: Deciding | None = None
    """A second metric for comparisons of choices, such as bandwidth with time."""
    own_time: str = ""
    """Metric of the program's own time, s; empty if only the launch was timed."""
    measured_part: Deciding | None = None
    """Time of the part of a longer run that the deciding metric measures."""
    own_cpu_percent: str = ""
    """Metric of the CPU time of a rank over that time, %."""
    trial_s: float | None = None
    """Time that one more trial takes."""
    other_points: Sequence[Point] = ()
    """Points of the experiment's other slices: they add to the scatter."""
    slices: int = 1
    """Number of slices of the experiment, this one included."""
    share: float = 1.0
    """Share of the error that the intervals may spend, if trials are looked at several times."""
    equal: float = EQUAL
    """Points that could differ by this ratio are not called equal."""
    search: Searched | None = None
    """The search whose candidates the points are."""
    claims_only: bool = False
    """Nothing reads the causes of the answer."""
    changed_programs: Sequence[Sequence[ProgramFile]] = ()
    """Programs of which the trials ran different files."""
    is_interleaved: bool = False
    """The design alternates its configurations: another order is no advice."""
    is_without_drift: bool = False
    """A drift over the order of the trials was removed from the values of the deciding metric."""

    def of_role(self, *roles: Role) -> list[Factor]:
        return [factor for factor in self.factors if factor.role in roles]

    def separating(self) -> list[Factor]:
        """Return the factors whose different levels are never compared.

        Choices are compared at one size, loads on one link.
        """
        kind = kind_of(self)
        if kind == "network":
            return [factor for factor in self.factors if factor.role != "network"]
        if kind == "load and network":
            return [factor for factor in self.factors if factor.name == CAPACITY]
        if kind in ("treatment", "scale and treatment"):
            return [factor for role in _SIZES for factor in self.of_role(role)][:1]
        return []

    def values(self, point: Point) -> Sequence[float]:
        return point.values.get(self.deciding.metric, ())

    def claims(self, points: Sequence[Point], separating: Sequence[Factor] = ()) -> SimultaneousIntervals:
        """Return the simultaneous intervals of these points.

        Points of different levels of the ``separating`` factors are not compared.
        """
        metric = self.deciding.metric
        others = [p for p in self.other_points if len(p.values.get(metric, ()))]
        everything = [*points, *others]
        levels = [[repr(p.parameters.get(factor.name)) for p in everything] for factor in self.factors]
        if others:  # the other slices may have another scatter
            levels.append([*["here"] * len(points), *["others"] * len(others)])
        return SimultaneousIntervals(
            [self.values(p) for p in points],
            printed=self.published,
            prior=self.prior,
            other_groups=[p.values[metric] for p in others],
            slices=self.slices,
            share=self.share,
            levels=levels,
            families=[repr([p.parameters.get(factor.name) for factor in separating]) for p in points],
            higher_is_better=self.deciding.higher_is_better,
        )

    @property
    def is_slowed(self) -> bool:
        """Return whether other load slowed half or more of the trials of every point."""
        return all(0 < len(self.values(point)) <= 2 * point.disturbed for point in self.measured())

    def measured(self) -> list[Point]:
        """Return the points that have values."""
        return [point for point in self.points if len(self.values(point))]


def kind_of(question: ExperimentQuestion) -> QuestionKind:
    """Return the question; the first that the roles of the factors fit."""
    roles = {factor.role for factor in question.factors}
    scales = "scale" in roles
    if question.search is not None:
        return "best settings"
    if question.against is not None:
        return "scale and treatment"
    if question.steps:
        return "steps"
    if (question.load_test or question.accepted) and "load" in roles:
        return "load and network"
    if not roles:
        return "one point"
    if "network" in roles:
        return "network"
    if "treatment" in roles:
        return "scale and treatment" if scales else "treatment"
    if scales:
        return "weak scale" if question.weak else "scale"
    return "message size" if roles == {"message"} else "growth"
