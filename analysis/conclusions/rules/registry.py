"""What a finding is, and the list of rules that may make one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from analysis.conclusions.observations.reading import Reading
from analysis.statistics import Interval

Group = Literal["scaling", "time", "traffic", "network", "trust"]
Strength = Literal["strong", "moderate", "weak", "printed"]
"""Strong: intervals or tests leave no doubt. Moderate: measured, with a qualification in the caveat. Weak: a hint. Printed:
follows from published numbers as they stand, which have no spread of their own."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One number behind a finding, in the unit of its metric."""

    label: str
    value: float
    unit: str
    metric: str = ""
    """Catalogue id; empty for a number computed from several."""
    size: float | None = None
    """Where on the axis; None for a number of the whole study."""
    interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """A conclusion in one sentence, with what it rests on and what a person can do about it."""

    rule: str
    group: Group
    statement: str
    strength: Strength
    evidence: tuple[Evidence, ...]
    chart: str
    """Element of the experiment page that shows it: time, speedup, where-time-goes, packets, throughput, interarrival ..."""
    next_step: str
    caveat: str = ""
    where: Mapping[str, Any] = field(default_factory=dict)
    """Values of the other swept parameters that it holds for."""
    explains: float | None = None
    """Share of the elapsed time at its place that it explains, at most; None where that is not known, or nothing."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


Rule = Callable[[Reading], Iterable[Finding]]
RULES: Final[dict[str, Rule]] = {}
"""By name, in the order in which their findings are listed."""


def rule(function: Rule) -> Rule:
    """Enter a rule under its function's name; a rule yields nothing where the data do not bear its claim."""
    RULES[function.__name__] = function
    return function
