"""Facts: findings merged over all slices, causes first, ranked by their share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import exp, expm1
from typing import Any, Final, Literal

from analysis.conclusions.answer import Answer, Cause
from analysis.conclusions.answering import OUTLIERS, measured_once, slowed_points
from analysis.conclusions.context import ExperimentQuestion, Factor
from analysis.conclusions.observations.drift import Drift, drift_of
from analysis.conclusions.observations.reading import Observation
from analysis.conclusions.questions.survival import LEVEL
from analysis.conclusions.rules.registry import Finding
from analysis.conclusions.rules.report import Report
from analysis.conclusions.sentences import answers as words
from analysis.conclusions.wording import listed_points, point_words
from analysis.scaling import DISTURBED
from analysis.statistics import Interval

Fold = Literal["cause", "traffic", "run", "capture"]
"""Causes are shown; the others are folded under headings."""

MOST_CAUSES: Final = 5
_EXPLAINS: Final = 0.05
"""Share of the elapsed time below which a fact is not a cause."""
_CAPTURE: Final = frozenset({"degraded_capture", "degraded_link", "rows_disagree"})


@dataclass(frozen=True, slots=True)
class Fact:
    """One finding of the whole experiment."""

    rule: str
    fold: Fold
    statement: str
    at: str
    """The slice that the statement is of, and the others it holds for; '' if it holds everywhere."""
    explains: float | None
    """Share of the elapsed time at its place that it explains, at most; None if that is not known."""
    strength: str
    chart: str
    next_step: str
    caveat: str = ""
    where: Mapping[str, Any] = field(default_factory=dict)
    evidence: tuple[Observation, ...] = ()

    @classmethod
    def of(cls, finding: Finding, fold: Fold, at: str) -> Fact:
        shared = [name for name in cls.__slots__ if name not in ("fold", "at")]
        return cls(fold=fold, at=at, **{name: getattr(finding, name) for name in shared})

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def causes_of(answer: Answer) -> Sequence[Cause]:
    """Return the answer's own causes, unless its sentence holds the only one."""
    is_in_sentence = len(answer.causes) == 1 and answer.causes[0].statement in answer.sentence
    return () if is_in_sentence else answer.causes[:MOST_CAUSES]


def facts(question: ExperimentQuestion, answer: Answer, report: Report) -> tuple[Fact, ...]:
    """Return every finding once: at most ``MOST_CAUSES`` causes first, by their share."""
    by_rule: dict[str, list[Finding]] = {}
    for finding in report.findings:
        by_rule.setdefault(finding.rule, []).append(finding)
    slices = [part.where for part in report.slices] or [report.where]
    merged = [_merged(findings, slices, question.factors) for findings in by_rule.values()]
    causes = sorted((f for f in merged if f.fold == "cause"), key=lambda f: -(f.explains or 0.0))
    most = MOST_CAUSES - len(causes_of(answer))
    folded = (replace(cause, fold="run") for cause in causes[most:])
    ranked = (*causes[:most], *(f for f in merged if f.fold != "cause"), *folded)
    drift = drift_of(question)
    if drift is not None and drift.is_found and not drift.is_balanced:
        ranked = tuple(_doubted(fact, "weak" if answer.strength == "open" else "moderate") for fact in ranked)
    return (*ranked, *_of_trials(question, answer, drift))


def _doubted(fact: Fact, most: str) -> Fact:
    """Limit the strength of a fact that the order of the trials may explain."""
    order = ("weak", "moderate", "strong")
    is_stronger = fact.strength in order and order.index(fact.strength) > order.index(most)
    return replace(fact, strength=most) if is_stronger and fact.fold != "capture" else fact


def _of_trials(question: ExperimentQuestion, answer: Answer, drift: Drift | None) -> Iterator[Fact]:
    """Yield the facts about single trials: programs, drift, outliers, other load."""
    if question.changed_programs:
        yield _note("changed_program", *words.changed_programs(question.changed_programs))
    if drift is not None and drift.is_found:
        yield _of_drift(question, drift)
    elif drift is not None and answer.drift is not None:
        most = expm1(max(abs(end) for end in drift.interval(LEVEL)))
        yield _note(
            "drift", *words.drift_not_excluded(question.deciding.label, most, is_interleaved=question.is_interleaved)
        )
    measured = question.measured()
    counted, slowed = sum(len(question.values(point)) for point in measured), sum(point.disturbed for point in measured)
    outliers = sum(int(figure.value or 0) for figure in answer.figures if figure.name == OUTLIERS)
    if outliers:
        yield _note("outliers", *words.outliers(outliers, counted))
    excluded = sum(point.excluded.get(DISTURBED, 0) for point in question.points)
    if slowed or excluded:
        only = slowed_points(question)
        only_at = listed_points(question.factors, only, len(measured)) if 0 < len(only) < len(measured) else ""
        yield _note("other_load", *words.other_load(excluded + slowed, excluded, excluded + counted, only_at))
    once = measured_once(question)
    if 0 < len(once) < len(measured):  # others have the scatter that the sentence names
        yield _note("measured_once", *words.measured_once(question, once))
    cut = [point for point in measured if point.over_time]
    if cut:
        names = [point_words(question.factors, point.parameters) for point in cut]
        yield _note("time_limit", *words.time_limit(sum(point.over_time for point in cut), names))


def _note(rule: str, statement: str, next_step: str) -> Fact:
    return Fact(rule, "run", statement, "", None, "strong", "time", next_step)


def _of_drift(question: ExperimentQuestion, drift: Drift) -> Fact:
    whole, metric = exp(drift.slope * (drift.trials - 1)), question.deciding.metric
    interval = Interval(*drift.interval(), 0.95, "t, of the slope within the configurations, on logarithms")
    evidence = (
        Observation("Change per trial", drift.slope, "share", metric, interval=interval),
        Observation("Change over the experiment", whole - 1, "share", metric),
    )
    statement, next_step = words.drift_fact(
        question.deciding.label, drift, whole, is_interleaved=question.is_interleaved
    )
    return Fact("drift", "run", statement, "", None, "strong", "time", next_step, evidence=evidence)


def _merged(alike: Sequence[Finding], slices: Sequence[Mapping[str, Any]], factors: Sequence[Factor]) -> Fact:
    """Merge the findings of one rule into the fact of the slice it explains most of."""
    largest = max(alike, key=lambda finding: finding.explains or 0.0)
    is_everywhere = len(alike) == len(slices)
    at = ""
    if len(slices) > 1 and not (is_everywhere and len({finding.statement for finding in alike}) == 1):
        others = [finding.where for finding in alike if finding is not largest]
        at = words.also_at(largest.where, others, slices, factors, is_everywhere=is_everywhere)
    return Fact.of(largest, _fold(largest), at)


def _fold(finding: Finding) -> Fold:
    if finding.explains is not None and finding.explains >= _EXPLAINS:
        return "cause"
    if finding.rule in _CAPTURE:
        return "capture"
    return "traffic" if finding.group in ("traffic", "network") else "run"
