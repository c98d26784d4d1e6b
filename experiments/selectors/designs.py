"""Structure of designs: varying parameters, ladders, networks and loads. Pure."""

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
    """A configuration with its counted values."""

    @property
    def parameters(self) -> Mapping[str, Any]: ...
    @property
    def values(self) -> Mapping[str, Sequence[float]]: ...
    def median(self, metric: str) -> float | None: ...


def is_number(value: Any) -> TypeGuard[float]:
    """Return whether a parameter is a number; True and False are words."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def varying(points: Sequence[DesignPoint]) -> list[str]:
    """Return the parameters that differ between points, ``hosts`` first."""
    seen: dict[str, set[str]] = defaultdict(set)
    for point in points:
        for name, value in point.parameters.items():
            seen[name].add(repr(value))
    names = [name for name, values in seen.items() if len(values) > 1]
    return sorted(names, key=lambda name: (name != "hosts", names.index(name)))


def is_ladder(points: Sequence[DesignPoint]) -> bool:
    """Return whether the points are the steps of a tuning ladder.

    A grid has more points than single changes; parameters that change together count once. Points that differ in their link alone are
    networks.
    """
    names = varying(points)
    if all(name.startswith(_LINK) for name in names):
        return False
    changes = sum(max(partition) for partition in {_partition(points, name) for name in names})
    return _FEWEST_STEPS <= len(points) <= 1 + changes and len(names) > 1


def _partition(points: Sequence[DesignPoint], name: str) -> tuple[int, ...]:
    """Return the level of every point as a number, in order of appearance."""
    seen: dict[str, int] = {}
    return tuple(seen.setdefault(repr(point.parameters.get(name)), len(seen)) for point in points)


def are_networks(points: Sequence[DesignPoint]) -> bool:
    """Return whether links differ in several properties of which none varies alone.

    The effects of such properties are confounded: links are compared as wholes. Links over enough levels of delay or rate are excluded,
    since a model separates them.
    """
    names = varying(points)
    links = [name for name in names if name.startswith(_LINK)]
    if len(links) < 2 or max(_levels(points, name) for name in (DELAY, RATE)) >= FEWEST_LEVELS:
        return False
    return not any(_varies_alone(points, name, names) for name in links)


def _varies_alone(points: Sequence[DesignPoint], name: str, names: Sequence[str]) -> bool:
    """Return whether two points differ in this link property alone."""
    others = [other for other in names if other != name and other.startswith(_LINK)]
    levels: dict[str, set[str]] = defaultdict(set)
    for point in points:
        levels[repr([point.parameters.get(other) for other in others])].add(repr(point.parameters.get(name)))
    return any(len(values) > 1 for values in levels.values())


def _levels(points: Sequence[DesignPoint], name: str) -> int:
    return len({repr(point.parameters.get(name)) for point in points})


def loads_of(points: Sequence[DesignPoint], test: LoadTest) -> Mapping[float, list[Load]]:
    """Return loads by capacity (bit/s), with wall times and the use of each resource."""
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
