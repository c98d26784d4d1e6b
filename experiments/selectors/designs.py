"""What the points of a design are to each other: which parameters vary, whether they are steps of a ladder, what load they carry. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol, TypeGuard

from analysis.answers.needs import DELAY, FEWEST_LEVELS, LOSS, RATE
from analysis.evaluation.envelope import Load
from experiments.workloads import LoadTest

CAPACITY: Final = "link.bandwidth"
_FEWEST_STEPS: Final = 3
_LINK: Final = frozenset({DELAY, RATE, LOSS})


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

    A grid of parameters, whole or in parts, has more points than that. Links over enough levels are no ladder: each that is added to
    them brings a delay and a rate of its own.
    """
    names = varying(points)
    if _LINK.issuperset(names) and max(_levels(points, name) for name in (DELAY, RATE)) >= FEWEST_LEVELS:
        return False
    changes = sum(_levels(points, name) - 1 for name in names)
    return _FEWEST_STEPS <= len(points) <= 1 + changes and len(names) > 1


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
