"""All findings of a study: the verdict first, then what it rests on, then what it cannot tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from analysis.conclusions.observations.reading import ChoiceOf, Reading
from analysis.conclusions.rules.registry import RULES, Finding
from analysis.conclusions.rules.verdict import Verdict, judge
from analysis.numbers import significant
from analysis.scaling import Study, fit_models
from analysis.trust_level import FLAGGED

_ORDER: Final = {"scaling": 0, "time": 1, "traffic": 2, "network": 3, "trust": 4}


@dataclass(frozen=True, slots=True)
class Report:
    """Findings of one study, grouped: scaling, time, traffic, network, trust. ``slices`` where other parameters vary too."""

    name: str
    verdict: Verdict
    findings: tuple[Finding, ...]
    cannot_tell: tuple[str, ...]
    where: Mapping[str, Any] = field(default_factory=dict)
    slices: tuple[Report, ...] = ()

    def group(self, name: str) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.group == name)

    def brief(self) -> Report:
        """Return the report without its findings and slices."""
        return replace(self, findings=(), slices=())

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "name": self.name,
            "where": dict(self.where),
            "verdict": self.verdict.to_dict(),
            "findings": [f.to_dict() for f in self.findings],
            "cannot_tell": list(self.cannot_tell),
            "slices": [s.to_dict() for s in self.slices],
        }


def find(study: Study, choice_of: ChoiceOf = fit_models) -> Report:
    """Apply every rule to the study, slice by slice where parameters beside the axis vary.

    The same study always gives the same report. Where every slice has a single size there is no scaling to speak of: the
    rules then see the study as a whole.
    """
    slices = study.slices()
    if len(slices) == 1 or all(len({x for x, _ in s.sized(s.time_metric)}) < 2 for s in slices):
        return _report(study, choice_of)
    reports = tuple(_report(s, choice_of) for s in slices)
    together = tuple(f for report in reports for f in report.findings)
    unsaid = tuple(dict.fromkeys(line for report in reports for line in report.cannot_tell))
    return Report(study.name, _joint_verdict(reports, study.axis), together, unsaid, slices=reports)


def _report(study: Study, choice_of: ChoiceOf) -> Report:
    reading = Reading(study, choice_of)
    scales = len({t.size for t in reading.times}) == len(reading.times)
    findings = [
        replace(finding, where=dict(study.where))
        for rule in RULES.values()
        for finding in rule(reading)
        if scales or finding.group != "scaling"
    ]
    findings.sort(key=lambda f: _ORDER[f.group])
    return Report(study.name, judge(reading), tuple(findings), tuple(_cannot_tell(reading)), dict(study.where))


def _joint_verdict(reports: tuple[Report, ...], axis: str) -> Verdict:
    classes = [r.verdict.verdict for r in reports]
    if len(set(classes)) == 1 and len({r.verdict.best_size for r in reports}) == 1:
        return replace(reports[0].verdict, sentence=f"In all {len(reports)} slices: {reports[0].verdict.sentence}")
    told = [
        f"{r.verdict.verdict}{f' (best {significant(r.verdict.best_size)})' if r.verdict.best_size else ''} at {words(r.where)}"
        for r in reports
    ]
    worst = next(c for c in ("limited", "scales", "unclear", "failed") if c in classes)
    return Verdict(worst, f"How it scales with {axis} depends on the other parameters: {'; '.join(told[:6])}.")


def words(where: Mapping[str, Any]) -> str:
    """The other parameters in words: "link.bandwidth = 100 000 000, molecules = 512"."""
    return ", ".join(
        f"{name} = {significant(value)}" if isinstance(value, float) else f"{name} = {value}"
        for name, value in where.items()
    )


def _cannot_tell(reading: Reading) -> list[str]:
    study, lines = reading.study, []
    if study.published:
        lines.append("The printed values have no repetitions: how much they would scatter is not known.")
    if not reading.cpu:
        lines.append("No CPU time was measured, so computing and waiting cannot be told apart.")
    if not reading.series("packets"):
        flagged = any(level in FLAGGED for _, point in reading.points for level in point.trust)
        lines.append(
            "No capture can be trusted fully, so nothing can be said about the wire."
            if flagged
            else "No packets were captured, so nothing can be said about the wire."
        )
    if reading.series("packets") and any(study.bandwidth_of(place.point) is None for place in reading.times):
        lines.append("The link's bandwidth is not known, so its load is not either.")
    if study.cores is not None:
        lines.append("All hosts are virtual ones of one machine: real hosts have their own cores, caches and memory.")
    return lines
