"""What findings add to an answer: one fact for all slices of a sweep, causes first and ranked by what they explain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import exp
from typing import Any, Final, Literal

from analysis.conclusions.answer import Answer, Cause
from analysis.conclusions.asked import Asked, Factor
from analysis.conclusions.observations.drift import Drift, drift_of, per_trial
from analysis.conclusions.rules.registry import Evidence, Finding
from analysis.conclusions.rules.report import Report
from analysis.conclusions.wording import levels, place
from analysis.numbers import change, plural
from analysis.statistics import Interval

Fold = Literal["cause", "traffic", "run", "capture"]
"""Causes stand open; the others are folded away under a heading of their own."""

MOST_CAUSES: Final = 5
_EXPLAINS: Final = 0.05
"""Share of the elapsed time below which a fact is no cause of anything that a reader would see."""
_CAPTURE: Final = frozenset({"degraded_capture", "degraded_link", "rows_disagree"})
_ANSWERED: Final = frozenset({"few_repetitions"})
"""What the answer itself says, and for its own question."""
_FOLDS: Final[Mapping[str, Fold]] = {"traffic": "traffic", "network": "traffic", "scaling": "run", "time": "run"}


@dataclass(frozen=True, slots=True)
class Fact:
    """One finding of the whole experiment."""

    rule: str
    fold: Fold
    statement: str
    at: str
    """The slice that the statement is of, and the others it holds for; '' where it holds everywhere."""
    explains: float | None
    """Share of the elapsed time at its place that it explains, at most; None where that is not known."""
    strength: str
    chart: str
    next_step: str
    caveat: str = ""
    where: Mapping[str, Any] = field(default_factory=dict)
    evidence: tuple[Evidence, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def causes_of(answer: Answer) -> Sequence[Cause]:
    """Return the answer's own causes, unless its sentence holds the only one."""
    told_already = len(answer.causes) == 1 and answer.causes[0].statement in answer.sentence
    return () if told_already else answer.causes[:MOST_CAUSES]


def facts(asked: Asked, answer: Answer, report: Report) -> tuple[Fact, ...]:
    """Return every finding once: the causes first, by what they explain, and no more of them than a reader takes in."""
    by_rule: dict[str, list[Finding]] = {}
    for finding in report.findings:
        if finding.rule not in _ANSWERED:
            by_rule.setdefault(finding.rule, []).append(finding)
    slices = [part.where for part in report.slices] or [report.where]
    merged = [_merged(each, slices, asked.factors) for each in by_rule.values()]
    causes = sorted((f for f in merged if f.fold == "cause"), key=lambda f: -(f.explains or 0.0))
    most = MOST_CAUSES - len(causes_of(answer))
    ranked = (*causes[:most], *(f for f in merged if f.fold != "cause"), *(_folded(f) for f in causes[most:]))
    drift = drift_of(asked)
    if drift is None or not drift.is_found:
        return ranked
    if not drift.is_balanced:
        ranked = tuple(_doubted(fact, "weak" if answer.strength == "open" else "moderate") for fact in ranked)
    return (*ranked, _of_drift(asked, drift))


def _doubted(fact: Fact, most: str) -> Fact:
    """Return a fact as weak as it is if the order of the trials may explain what it says of the configurations."""
    order = ("weak", "moderate", "strong")
    is_stronger = fact.strength in order and order.index(fact.strength) > order.index(most)
    return replace(fact, strength=most) if is_stronger and fact.fold != "capture" else fact


def _of_drift(asked: Asked, drift: Drift) -> Fact:
    """Return the fact that the trials drift, with its size over the whole experiment."""
    low, high = drift.interval()
    whole = exp(drift.slope * (drift.trials - 1))
    what = "the comparison takes it out" if drift.is_balanced else "it cannot be separated from what was varied"
    how = "t, of the slope within the configurations, on logarithms"
    evidence = (
        Evidence(
            "Change per trial", drift.slope, "share", asked.deciding.metric, interval=Interval(low, high, 0.95, how)
        ),
        Evidence("Change over the experiment", whole - 1, "share", asked.deciding.metric),
    )
    look = "look for what changes on the machines meanwhile: temperature, caches, files, other programs."
    return Fact(
        rule="drift",
        fold="run",
        statement=f"{asked.deciding.label} drifts by {per_trial(drift)}, {change(whole)} over {plural(drift.trials, 'trial')}: {what}.",
        at="",
        explains=None,
        strength="strong",
        chart="time",
        next_step=f"{look[:1].upper()}{look[1:]}"
        if drift.is_balanced
        else f"Add rounds of all configurations, or clone it with interleaved order; {look}",
        evidence=evidence,
    )


def _merged(alike: Sequence[Finding], slices: Sequence[Mapping[str, Any]], factors: Sequence[Factor]) -> Fact:
    """One fact of the findings of one rule: that of the slice where it explains most, and where else it holds."""
    told = max(alike, key=lambda finding: finding.explains or 0.0)
    return Fact(
        rule=told.rule,
        fold=_fold(told),
        statement=told.statement,
        at=_at(told, alike, slices, factors),
        explains=told.explains,
        strength=told.strength,
        chart=told.chart,
        next_step=told.next_step,
        caveat=told.caveat,
        where=told.where,
        evidence=told.evidence,
    )


def _fold(finding: Finding) -> Fold:
    if finding.explains is not None and finding.explains >= _EXPLAINS:
        return "cause"
    if finding.group == "trust":
        return "capture" if finding.rule in _CAPTURE else "run"
    return _FOLDS[finding.group]


def _folded(cause: Fact) -> Fact:
    return Fact(**{**{name: getattr(cause, name) for name in Fact.__slots__}, "fold": "run"})


def _at(told: Finding, alike: Sequence[Finding], slices: Sequence[Mapping[str, Any]], factors: Sequence[Factor]) -> str:
    """ "", "pull", "pull; alike for multicast and tree", "100 Mbit/s, 2 ms delay; alike for 4 of 6 combinations"."""
    if len(slices) < 2:
        return ""
    everywhere = len(alike) == len(slices)
    if everywhere and len({finding.statement for finding in alike}) == 1:
        return ""
    varying = [name for name in told.where if len({repr(where.get(name)) for where in slices}) > 1]
    known = {factor.name: factor for factor in factors}
    named = [known.get(name) or Factor(name, name.replace("_", " "), "treatment") for name in varying]
    own = place(named, told.where)
    others = [finding.where for finding in alike if finding is not told]
    if not others:
        return own
    if len(named) == 1:
        return f"{own}; alike for {levels(named[0], [where.get(named[0].name) for where in others])}"
    return (
        f"{own}; alike for all others" if everywhere else f"{own}; alike for {len(others)} of {len(slices) - 1} others"
    )
