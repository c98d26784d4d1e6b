"""Findings, and the list of rules that make them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from analysis.conclusions.observations.reading import Observation, Reading, SizeEntry
from analysis.conclusions.sentences.findings import FINDINGS, Group

Strength = Literal["strong", "moderate", "weak", "printed"]
"""Strong: by intervals or tests. Moderate: measured, with a caveat. Weak: a hint. Printed: from
published numbers, which have no spread of their own."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A conclusion in one sentence, with its evidence and the suggested next step."""

    rule: str
    group: Group
    statement: str
    strength: Strength
    evidence: tuple[Observation, ...]
    chart: str
    next_step: str
    caveat: str = ""
    where: Mapping[str, Any] = field(default_factory=dict)
    """Values of the other swept parameters."""
    explains: float | None = None
    """Largest share of the elapsed time at its place that it explains; None if unknown."""


Rule = Callable[[Reading], Iterable[Finding]]
RULES: Final[list[Rule]] = []
"""In the order in which their findings are listed."""


def rule(function: Rule) -> Rule:
    """Register a rule, which yields nothing without enough data."""
    RULES.append(function)
    return function


def finding_at(reading: Reading, name: str, entry: SizeEntry, metric: str, label: str, **words: Any) -> Finding:
    """Return the finding about one size; all sizes of the metric are its evidence."""
    strength = words.pop("strength", None) or reading.strength_at(entry, metric)
    return finding(name, strength, reading.evidence(label, metric), **{"at": reading.at(entry.point)} | words)


def finding(
    name: str,
    strength: Strength,
    evidence: Iterable[Observation],
    *,
    explains: float | None = None,
    caveat: str | None = None,
    **words: str,
) -> Finding:
    """Return the finding with the texts of ``name``; a comma separates a variant."""
    text = FINDINGS[name]
    return Finding(
        name.partition(",")[0],
        text.group,
        text.statement.format(**words),
        strength,
        tuple(evidence),
        text.chart,
        text.next_step.format(**words),
        text.caveat.format(**words) if caveat is None else caveat,
        explains=None if explains is None else min(explains, 1.0),
    )
