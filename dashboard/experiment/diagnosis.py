"""The diagnosis as its page says it: verdict, findings with links to what shows them, key figures, tables of models and sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final

from analysis import numbers
from analysis.findings import Diagnosis, Finding, FittedModel, Model
from analysis.findings.wording import sizes
from analysis.scaling import Estimate, ObserverEffect
from dashboard.charts.panel import Section
from dashboard.experiment.results import Results
from dashboard.experiment.scaling import SHORT
from dashboard.experiment.time_breakdown import breakdown
from dashboard.labels import parameter_label, parameters_sentence, value_words
from experiments.metrics import find
from experiments.selectors.diagnosis import KeptDiagnosis, ObservedPoint

_PANELS: Final = {
    "time": ("time", "elapsed"),
    "speedup": ("speedup", "time", "elapsed"),
    "where-time-goes": ("where-time-goes", "time", "cpu"),
    "efficiency": ("efficiency", "speedup"),
    "packets": ("packets",),
    "throughput": ("throughput_Bps",),
    "interarrival": ("interarrival_mean_s",),
}
"""Panels of the page that show what a finding calls its chart, the best first."""
STRENGTH: Final = {
    "firm": ("ok", "Firm"),
    "moderate": ("warn", "Moderate"),
    "printed": ("", "As printed"),
    "open": ("warn", "Open"),
}
"""(tone, word) of an answer's strength."""
_STRENGTH: Final = {"weak": "weak evidence", "moderate": "", "strong": "", "printed": ""}
_CONFIDENCE: Final = {
    "strong": ("ok", "High", "no other size can be mistaken for the best"),
    "moderate": ("warn", "Medium", ""),
    "printed": ("", "As printed", "single values without repetitions"),
    "weak": ("warn", "Low", ""),
}


@dataclass(frozen=True)
class Find:
    """One finding: `words` and `href` lead to what shows it; both are empty where the page has no such panel."""

    statement: str
    at: str
    caveat: str
    next_step: str
    weak: str
    words: str
    href: str


def shown(diagnosis: KeptDiagnosis, results: Results, sections: Sequence[Section]) -> dict[str, Any]:
    """Everything that the fragments of the page ask for; findings point to the panels of `sections`."""
    study = diagnosis.study
    report = study.report
    titles = {chart.element: chart.title for section in sections for chart in section.charts}
    return {
        "answer": diagnosis.answer,
        "strength": STRENGTH[diagnosis.answer.strength],
        "settle": _settle(diagnosis),
        "finds": [_find(finding, results, titles) for finding in report.findings],
        "cannot_tell": report.cannot_tell,
        "predicted": _predicted(study),
        "confidence": _confidence(report.findings),
        "misfit": _misfit(study),
        "next": _next(study),
        "next_queued": diagnosis.next_queued,
        "stamp": diagnosis.stamp,
        "models": _models(study),
        "sizes": _sizes(study),
        "breakdown": breakdown(study),
        "observer": [_observer(row, results) for row in diagnosis.observer],
        "trials": study.trials,
        "slices_left_out": study.slices_left_out,
    }


def _settle(diagnosis: KeptDiagnosis) -> str:
    """What would settle the question, with the time that it takes."""
    missing = diagnosis.answer.missing
    if missing is None:
        return ""
    return f"{missing.statement}, {numbers.duration(missing.seconds)}" if missing.seconds else missing.statement


def _find(finding: Finding, results: Results, titles: Mapping[str, str]) -> Find:
    words, href = _evidence(finding, results, titles)
    return Find(
        statement=finding.statement,
        at=where_words(finding.where),
        caveat=finding.caveat,
        next_step=finding.next_step,
        weak=_STRENGTH[finding.strength],
        words=words,
        href=href,
    )


def _evidence(finding: Finding, results: Results, titles: Mapping[str, str]) -> tuple[str, str]:
    chart = finding.chart
    if chart == "link":
        return "Setup", "#setup"
    if chart == "matrix":
        return _traffic_of_a_trial(finding, results)
    panel = next((name for name in _PANELS.get(chart, (chart,)) if name in titles), None)
    return (titles[panel], f"#c-{panel}") if panel is not None else ("Configurations", "#configurations")


def _traffic_of_a_trial(finding: Finding, results: Results) -> tuple[str, str]:
    """Matrices are drawn per trial: the first counted one of the size that the finding speaks of."""
    sizes = {evidence.size for evidence in finding.evidence} - {None}
    for row in results.rows:
        trials = row.trial_ids.get("packets") or row.trial_ids.get(
            "elapsed_s", []
        )  # flagged captures are not among the first
        if trials and (not sizes or row.hosts in sizes) and _agrees(row.parameters, finding.where):
            return f"Traffic of trial {trials[0]}", f"/trials/{trials[0]}/"
    return "Configurations", "#configurations"


def _agrees(parameters: Mapping[str, Any], where: Mapping[str, Any]) -> bool:
    return all(parameters.get(name) == value for name, value in where.items())


def where_words(where: Mapping[str, Any]) -> str:
    """The slice of a larger sweep: 'MTU 1500, delay 2 ms'; '' for the whole."""
    return parameters_sentence(where, list(where))


def _time_models(diagnosis: Diagnosis) -> list[tuple[str, Model]]:
    """(slice in words, model of the elapsed time) of every slice that has one."""
    return [
        (where_words(part.where), part.models["elapsed_s"]) for part in diagnosis.slices if "elapsed_s" in part.models
    ]


def _predicted(diagnosis: Diagnosis) -> list[tuple[str, str]]:
    """Key figures that only a model gives, of a study with one curve; several are told apart in the table of models."""
    if len(diagnosis.slices) != 1:
        return []
    figures = []
    part = diagnosis.slices[0]
    best = diagnosis.report.verdict.best_size
    row = next((r for r in part.rows if r.size == best), None)
    if row is not None and row.size != row.reference:
        ends = numbers.interval(row.speedup.interval)
        reached = numbers.times(row.speedup.value) + (f" ({ends})" if ends else "")
        figures.append(("Speed-up at best", f"{reached}, ideal {numbers.times(row.ideal)}"))
    for _, model in _time_models(diagnosis):
        chosen = model.chosen
        if chosen.best_size is not None:
            name = f"Best predicted ({SHORT[chosen.model]})"
            figures.append((name, _best_words(chosen.best_size, diagnosis.axis, model.extrapolated)))
        usl = model.fit("usl")
        if usl is not None:
            for label, parameter in (("Contention σ (USL)", "sigma"), ("Crosstalk κ (USL)", "kappa")):
                figures.append((label, _interval_of(usl.parameters[parameter])))
    return figures


def _best_words(best: Estimate, axis: str, extrapolated: bool) -> str:
    if not isfinite(best.value):
        return f"more {axis} than were measured: the model has no optimum"
    words = f"{numbers.significant(best.value, 2)} {axis}"
    if best.low is not None and best.high is not None:
        words += f", 95 % CI {numbers.between(best.low, best.high, digits=2)}"
    elif best.low is not None:
        words += f", at least {numbers.significant(best.low, 2)}"
    return f"{words}; extrapolated" if extrapolated else words


def _confidence(findings: Sequence[Finding]) -> tuple[str, str, str] | None:
    """(tone, word, why) for the best size; None where no best size was found."""
    best = next((f for f in findings if f.rule == "best_size"), None)
    if best is None:
        return None
    tone, word, why = _CONFIDENCE[best.strength]
    return tone, word, best.caveat or why


def _misfit(diagnosis: Diagnosis) -> str:
    """Where the chosen model of the time misses by more than the repetitions scatter."""
    for where, model in _time_models(diagnosis):
        misfit = model.chosen.misfit
        if misfit.significant:
            by = numbers.amount(abs(misfit.residual), "s")
            at = sizes(misfit.size, diagnosis.axis) + (f", {where}" if where else "")
            return f"The fit misses by {by} at {at}, more than trials scatter. Take the prediction as a guide."
    return ""


def _next(diagnosis: Diagnosis) -> list[dict[str, Any]]:
    return [
        {
            "point": parameters_sentence(point.parameters, [diagnosis.axis, *part.where]),
            "repetitions": point.repetitions,
            "reason": point.reason,
        }
        for part in diagnosis.slices
        for point in part.next
    ]


def _models(diagnosis: Diagnosis) -> list[dict[str, Any]]:
    """One entry per slice and metric: the chosen model, why, and the others."""
    entries = []
    for part in diagnosis.slices:
        for metric, model in part.models.items():
            entries.append(
                {
                    "metric": find(metric).label,
                    "at": where_words(part.where),
                    "reason": model.reason,
                    "criterion": model.criterion,
                    "fits": [_fit(fit, model, find(metric).unit, diagnosis.axis) for fit in model.fits],
                }
            )
    return entries


def _fit(fit: FittedModel, model: Model, unit: str, axis: str) -> dict[str, Any]:
    best = fit.best_size if unit == "s" and model.metric == "elapsed_s" else None
    extrapolated = model.extrapolated and fit.model == model.chosen.model
    return {
        "title": fit.title,
        "chosen": fit.model == model.chosen.model,
        "formula": fit.formula,
        "unit": "" if unit in ("", "1", numbers.SHARE) else unit,
        # Read by their differences, whatever their size: one decimal for all.
        "aicc": numbers.NOTHING if fit.aicc is None else numbers.fixed(fit.aicc, 1),
        "cv": numbers.amount(fit.cv_error, numbers.SHARE),
        "best": _best_words(best, axis, extrapolated) if best is not None else "",
    }


def _sizes(diagnosis: Diagnosis) -> dict[str, Any]:
    """Speed-up, efficiency, serial fraction and cost of every size with their intervals."""
    parts = diagnosis.slices
    names = list(dict.fromkeys(name for part in parts for name in part.where))
    rows = [
        {
            "where": [value_words(name, part.where.get(name)) for name in names],
            "size": value_words(diagnosis.axis, int(row.size)),
            "elapsed": numbers.amount(row.elapsed.median, "s"),
            "interval": numbers.interval(row.elapsed.interval, "s"),
            "speedup": _ratio(row.speedup),
            "efficiency": _ratio(row.efficiency, numbers.SHARE),
            "karp_flatt": _ratio(row.serial_fraction) if row.serial_fraction else numbers.NOTHING,
            "cost": numbers.significant(row.cost.value),
        }
        for part in parts
        for row in part.rows
    ]
    first = next((row for part in parts for row in part.rows), None)
    return {
        "names": [parameter_label(name) for name in names],
        "rows": rows if len(rows) > 1 else [],
        "cost_unit": first.cost_unit if first else "",
        "reference": value_words(diagnosis.axis, int(first.reference)) if first else "",
    }


def _observer(point: ObservedPoint, results: Results) -> dict[str, Any]:
    return {"point": parameters_sentence(point.parameters, results.swept or ["hosts"]), **observer_words(point.effect)}


def observer_words(effect: ObserverEffect) -> dict[str, str]:
    """An observer effect in words: difference with its interval, both times, and what it means."""
    difference = numbers.percent_change(1 + effect.relative)
    if effect.low is not None and effect.high is not None:
        low, high = (numbers.percent_change(1 + end) for end in (effect.low, effect.high))
        difference += f" (95 % CI {low} to {high})"
    return {
        "difference": difference,
        "with": numbers.amount(effect.with_s, "s"),
        "without": f"{numbers.amount(effect.without_s, 's')}, n = {effect.controls}",
        "means": "within the scatter of the repetitions" if effect.within_scatter else "outside of their scatter",
    }


def _ratio(estimate: Estimate, unit: str = "") -> str:
    """'87.5 % (85 to 90 %)'."""
    return numbers.with_interval(estimate.value, estimate.interval, unit, 3)


def _interval_of(parameter: Estimate) -> str:
    ends = numbers.interval(parameter.interval)
    value = numbers.significant(parameter.value, 2)
    return f"{value}, 95 % CI {ends}" if ends else value
