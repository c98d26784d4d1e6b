"""Reports: all findings of a study, its verdict and its limitations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Literal

from analysis.conclusions.answer import Figure
from analysis.conclusions.answering import answer
from analysis.conclusions.context import Deciding, ExperimentQuestion, Factor
from analysis.conclusions.observations.reading import ChoiceOf, Reading
from analysis.conclusions.rules.registry import RULES, Finding
from analysis.conclusions.sentences.findings import LIMITATIONS, NO_TRIAL, advice, joint_verdict
from analysis.scaling import Point, Study, fit_models
from analysis.trust_level import FLAGGED

Class = Literal["scales", "limited", "unclear", "failed"]
_ORDER: Final = {"scaling": 0, "time": 1, "traffic": 2, "network": 3, "trust": 4}
_EFFICIENT: Final = 0.5
"""Least share of the ideal of a study that scales."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The scaling verdict: class, sentence, and the size to use (None if unknown)."""

    verdict: Class
    sentence: str
    best_size: float | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """Findings of one study by group; ``slices`` if other parameters vary too."""

    name: str
    verdict: Verdict
    findings: tuple[Finding, ...]
    cannot_tell: tuple[str, ...]
    where: Mapping[str, Any] = field(default_factory=dict)
    slices: tuple[Report, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self)


def find(
    study: Study,
    choice_of: ChoiceOf = fit_models,
    question: ExperimentQuestion | None = None,
    progress: Callable[[float], None] = lambda share: None,
) -> Report:
    """Apply every rule to the study, slice by slice if other parameters vary.

    The same study always gives the same report. If every slice has a single size there is no scaling: the
    rules then see the study as a whole. ``question`` is the experiment's, if known.
    """
    slices = study.slices()
    about = _Sizes(question, [s for s in slices if len(s.sized(s.time_metric)) > 1])
    if len(slices) == 1 or all(len({x for x, _ in s.sized(s.time_metric)}) < 2 for s in slices):
        return _report(study, choice_of, about)
    reports: list[Report] = []
    for part in slices:
        reports.append(_report(part, choice_of, about))
        progress(len(reports) / len(slices))
    together = tuple(f for report in reports for f in report.findings)
    unsaid = tuple(dict.fromkeys(line for report in reports for line in report.cannot_tell))
    return Report(study.name, _joint(reports, study.axis), together, unsaid, slices=tuple(reports))


def _report(study: Study, choice_of: ChoiceOf, about: _Sizes) -> Report:
    reading = Reading(study, choice_of)
    has_one_rank = bool(study.points) and all(p.parameters.get("ranks_per_host") == 1 for p in study.points)
    scales = len({t.size for t in reading.times}) == len(reading.times)
    findings = [
        replace(
            finding,
            where=dict(study.where),
            next_step=advice(finding.rule, finding.next_step, has_one_rank, study.cores),
        )
        for rule in RULES
        for finding in rule(reading)
        if scales or finding.group != "scaling"
    ]
    findings.sort(key=lambda f: _ORDER[f.group])
    verdict = _verdict(study, [t.point for t in reading.times], about)
    return Report(study.name, verdict, tuple(findings), tuple(_limitations(reading)), dict(study.where))


def _verdict(study: Study, points: Sequence[Point], about: _Sizes) -> Verdict:
    if not points:
        failed = any(p.lost for p in study.points)
        return Verdict("failed" if failed else "unclear", NO_TRIAL[failed])
    question = about.of(study, points)
    result = answer(question)
    if result.strength == "open":
        return Verdict("unclear", result.sentence)
    if study.kind == "weak":
        full = _number(result.figure("stays above 80 %"))
        return Verdict("limited" if full is None else "scales", result.sentence, full)
    sizes = sorted(float(p.parameters[study.axis]) for p in question.points)
    slowest = _number(result.figure("times the best", **{study.axis: sizes[0]}))
    size = _number(result.figure("enough")) or sizes[-1]
    scales = size == sizes[-1] and (slowest or 1.0) >= _EFFICIENT * size / sizes[0]
    return Verdict("scales" if scales else "limited", result.sentence, size)


def _number(figure: Figure | None) -> float | None:
    return None if figure is None else float(figure.value or 0)


class _Sizes:
    """Questions about the sizes of single slices of an experiment."""

    def __init__(self, question: ExperimentQuestion | None, slices: Sequence[Study]) -> None:
        self._question = question
        self._slices = max(len(slices), 1)
        # With ``against``, the deciding metric is a ratio of two choices, not a time of a size.
        sized = [] if question is None or question.against is not None else question.measured()
        self._points = {repr(p.parameters): p for p in sized}

    def of(self, study: Study, points: Sequence[Point]) -> ExperimentQuestion:
        """Return the question about one point of each size."""
        by_size = dict(sorted({float(p.parameters[study.axis]): p for p in reversed(points)}.items()))
        factor, weak = Factor(study.axis, study.axis, "scale", "", study.axis), study.kind == "weak"
        names = [repr(p.parameters) for p in by_size.values()]
        matching = [self._points[name] for name in names if name in self._points]
        if self._question is not None and matching:
            # As the experiment's answer about its slices: intervals hold for all of them, the scatter of others counts.
            others = [p for name, p in self._points.items() if name not in names] if self._slices > 1 else []
            question = replace(self._question, points=matching, factors=[factor], weak=weak, steps=False)
            return replace(question, other_points=others, slices=self._slices)
        deciding = Deciding(study.time_metric, "Elapsed time", "s")
        timed = [p for p in by_size.values() if min(p.array(study.time_metric)) > 0]
        return ExperimentQuestion(timed, deciding, [factor], study.published, weak)


def _joint(reports: Sequence[Report], axis: str) -> Verdict:
    verdicts = [report.verdict for report in reports]
    if len({(verdict.verdict, verdict.best_size) for verdict in verdicts}) == 1:
        return replace(verdicts[0], sentence=f"In all {len(reports)} slices: {verdicts[0].sentence}")
    worst: Class = next(c for c in ("limited", "scales", "unclear", "failed") if c in {v.verdict for v in verdicts})
    rows = [(report.verdict.verdict, report.verdict.best_size, report.where) for report in reports]
    return Verdict(worst, joint_verdict(axis, rows))


def _limitations(reading: Reading) -> list[str]:
    study, packets = reading.study, reading.series("packets")
    flagged = any(level in FLAGGED for _, point in reading.points for level in point.trust)
    holds = {
        "printed": study.published,
        "no CPU time": not reading.cpu,
        "no trusted capture": not packets and flagged,
        "no packets": not packets and not flagged,
        "no bandwidth": bool(packets) and any(study.bandwidth_of(entry.point) is None for entry in reading.times),
        "virtual hosts": study.cores is not None and (study.most_hosts is None or study.most_hosts > 1),
    }
    return [LIMITATIONS[name] for name, is_so in holds.items() if is_so]
