"""What the points of a design are to each other: which parameters vary, whether they are steps of a ladder, what load they carry. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol, TypeGuard

from analysis.conclusions.observations.envelope import Load
from analysis.conclusions.observations.needs import DELAY, FEWEST_LEVELS, RATE
from experiments.workloads import LoadTest

CAPACITY: Final = "link.bandwidth"
_FEWEST_STEPS: Final = 3
_LINK: Final = "link."


class DesignPoint(Protocol):
    """A configuration with its counted values: analysis.scaling.Point, experiments.selectors.ConfigurationRow."""

    @property
    def parameters(self) -> Mapping[str, Any]: ...
    @property
    def values(self) -> Mapping[str, Sequence[float]]: ...
    def median(self, metric: str) -> float | None: ...


def is_number(value: Any) -> TypeGuard[float]:
    """Whether a parameter's value is a number; True and False are words."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def varying(points: Sequence[DesignPoint]) -> list[str]:
    """Return the names of the parameters that differ between points, ``hosts`` first."""
    seen: dict[str, set[str]] = defaultdict(set)
    for point in points:
        for name, value in point.parameters.items():
            seen[name].add(repr(value))
    names = [name for name, values in seen.items() if len(values) > 1]
    return sorted(names, key=lambda name: (name != "hosts", names.index(name)))


def is_ladder(points: Sequence[DesignPoint]) -> bool:
    """Return whether the points are single steps: no more of them than there are changes to make one after another.

    A grid of parameters, whole or in parts, has more points than that; parameters that advance together make one change. Points that
    differ in their link alone are networks, which are compared with each other.
    """
    names = varying(points)
    if all(name.startswith(_LINK) for name in names):
        return False
    changes = sum(max(partition) for partition in {_partition(points, name) for name in names})
    return _FEWEST_STEPS <= len(points) <= 1 + changes and len(names) > 1


def _partition(points: Sequence[DesignPoint], name: str) -> tuple[int, ...]:
    """Return the level of every point as a number, in the order in which the levels appear."""
    seen: dict[str, int] = {}
    return tuple(seen.setdefault(repr(point.parameters.get(name)), len(seen)) for point in points)


def are_networks(points: Sequence[DesignPoint]) -> bool:
    """Return whether the links differ in several properties of which none varies alone.

    Such links are compared as wholes, since the effects of their properties are confounded. Links over enough levels of delay or rate are
    excluded: a model of both separates them.
    """
    names = varying(points)
    links = [name for name in names if name.startswith(_LINK)]
    if len(links) < 2 or max(_levels(points, name) for name in (DELAY, RATE)) >= FEWEST_LEVELS:
        return False
    return not any(_varies_alone(points, name, names) for name in links)


def _varies_alone(points: Sequence[DesignPoint], name: str, names: Sequence[str]) -> bool:
    """Return whether two points differ in this property and in no other one of the link."""
    others = [other for other in names if other != name and other.startswith(_LINK)]
    levels: dict[str, set[str]] = defaultdict(set)
    for point in points:
        levels[repr([point.parameters.get(other) for other in others])].add(repr(point.parameters.get(name)))
    return any(len(values) > 1 for values in levels.values())


def _levels(points: Sequence[DesignPoint], name: str) -> int:
    return len({repr(point.parameters.get(name)) for point in points})


def loads_of(points: Sequence[DesignPoint], test: LoadTest) -> Mapping[float, list[Load]]:
    """Return loads by capacity (bit/s): wall times and the use of every resource, the link's from its throughput."""
    loads: dict[float, list[Load]] = defaultdict(list)
    for point in points:
        jobs, capacity = point.parameters.get(test.load), point.parameters.get(CAPACITY)
        if not is_number(jobs) or not capacity:
            continue
        uses = {name: value for name, metric in test.uses.items() if (value := point.median(metric)) is not None}
        throughput = point.median(test.throughput)
        if throughput is not None:
            uses["link"] = throughput / capacity
        loads[float(capacity)].append(Load(float(jobs), list(point.values.get(test.wall, ())), uses))
    return loads
