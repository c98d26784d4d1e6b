"""The diagnosis of an experiment: verdict, findings, key figures, models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import floor, isfinite
from typing import Any, Final

from django.urls import reverse

from analysis import numbers
from analysis.conclusions import FOLDS, Answer, Cause, ChangePart, Diagnosis, Fact, FittedModel, Model, causes_of
from analysis.conclusions.observations.scatter import LEVEL
from analysis.conclusions.sentences.causes import IDEAL_FROM
from analysis.conclusions.wording import first_up, joined, lower_first, percent_level, sizes, whole_size, whole_sizes
from analysis.scaling import Estimate, ObserverEffect
from analysis.statistics import Interval
from dashboard.charts.panel import Section
from dashboard.charts.scaling import SCALED, SPEED_UP
from dashboard.help.terms import words_of
from dashboard.labels import parameter_label, parameters_sentence, sentence_and_rest, value_words
from dashboard.panels.experiment.results import Results
from dashboard.panels.experiment.rounds import most_repetitions
from dashboard.panels.experiment.time_breakdown import breakdown
from dashboard.states import STRENGTH
from experiments.metrics import described, find
from experiments.models.states import disturbed
from experiments.selectors import excluded_trials_of
from experiments.selectors.diagnosis import CachedDiagnosis

_PANELS: Final = {
    "time": ("time", "elapsed"),
    "deciding": ("deciding", "figure-0", "time", "elapsed"),
    "speedup": ("speedup", "time", "elapsed"),
    "where-time-goes": ("where-time-goes", "time", "cpu"),
    "inside-mpi": ("inside-mpi", "where-time-goes"),
    "efficiency": ("efficiency", "speedup"),
    "packets": ("packets",),
    "throughput": ("throughput_Bps",),
    "interarrival": ("interarrival_mean_s",),
}
"""Panels that show a chart named by a finding, the best first."""
MOST_FINDINGS: Final = 3
"""Findings on the first screen; the others are folded."""
_GAPS: Final = "Sizes not measured yet: the answer is about the measured ones"
_CORES: Final = "oversubscribed"
_OTHER_LOAD: Final = "other_load"
_CHANGED_PROGRAM: Final = "changed_program"
WEAKENING: Final = (_CHANGED_PROGRAM, _OTHER_LOAD, "measured_once")
"""Rules that lower the strength of an answer: they are stated below it."""
_LOSSES: Final = (_CORES, "computation_grows", "packet_step")
"""Rules about what larger sizes lose, the most direct first."""
_OFF: Final = ("descheduled", "off")
"""The rule that explains parts of a change in one plain sentence: ranks that share cores."""
_BY_PART: Final = ("Change by part", "#change-by-part")
_ALONE: Final = 0.95
"""Level of the intervals of a table outside the answer."""
_STRENGTH: Final = {"weak": "weak evidence", "moderate": "", "strong": "", "printed": ""}


@dataclass(frozen=True)
class FindingLink:
    """One cause or other fact; `words` and `href` link to the panel that shows it."""

    statement: str
    words: str
    href: str
    at: str = ""
    caveat: str = ""
    next_step: str = ""
    weak: str = ""
    name: str = ""
    """Name of its rule, and id of the term that defines it."""
    term: str = ""


def panels_of(sections: Sequence[Section], parts: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """(Title, address) of all charts and parts that can show a cause."""
    charts = {chart.element: (chart.title, f"#c-{chart.element}") for section in sections for chart in section.charts}
    return {element: (title, f"#part-{element}") for element, title in parts.items()} | charts


def diagnosis_context(
    diagnosis: CachedDiagnosis, results: Results, panels: Mapping[str, tuple[str, str]]
) -> dict[str, Any]:
    """Contents of the diagnosis fragments; causes link to one of the `panels`."""
    study, answer = diagnosis.study, diagnosis.answer
    verdict, reason = sentence_and_rest(answer.sentence)
    plain = [fact for fact in diagnosis.facts if fact.rule == _CORES and any(c.part in _OFF for c in answer.causes)]
    weakening = [fact for fact in diagnosis.facts if fact.rule in WEAKENING]
    slowed = any(fact.rule == _OTHER_LOAD for fact in weakening)
    reasons = (
        reason,
        *(sentence_and_rest(fact.statement)[0] for fact in plain),
        *(f"{fact.statement} {fact.next_step}".strip() for fact in weakening),
    )
    causes = [
        *(_cause(cause, panels, answer) for cause in causes_of(answer)),
        *(_find(fact, results, panels) for fact in diagnosis.facts if fact.fold == "cause"),
    ]
    loss = None if plain else _loss_beyond(answer, diagnosis.facts)
    if loss is not None:
        causes.insert(min(len(causes), MOST_FINDINGS - 1), _find(loss, results, panels))
    folded = [
        (
            f"More on {title}",
            [f for f in diagnosis.facts if f.fold == fold and f.rule not in WEAKENING and f is not loss],
        )
        for fold, title in FOLDS.items()
    ]
    fixes = [replace(cause, statement="", at="") for cause in causes[:MOST_FINDINGS] if cause.next_step or cause.caveat]
    more = [("", causes[MOST_FINDINGS:]), ("Suggested fixes", fixes)]
    more = [(title, finds) for title, finds in more if finds]
    more += [(title, [_find(fact, results, panels) for fact in facts]) for title, facts in folded if facts]
    parts, to_repeat = change_by_part(answer), _to_repeat(diagnosis, results)
    most = most_repetitions(results.experiment) if to_repeat or _settle(diagnosis) else 0
    return {
        "answer": answer,
        "verdict": verdict,
        "reason": " ".join(filter(None, reasons)),
        "strength": STRENGTH[diagnosis.answer.strength],
        "settle": _settle(diagnosis),
        "causes": causes[:MOST_FINDINGS],
        "more": more,
        "more_title": _more_title(sum(bool(find.statement) for _, finds in more for find in finds), fixes, parts),
        "parts": parts,
        "has_negative_part": any(
            min(part.before_s, part.after_s) < 0 for part in answer.parts if part.name == "imbalance"
        ),
        "parts_have_intervals": any(part.low_s is not None for part in answer.parts),
        "compared": [first_up(name) for name in answer.compared],
        "key_figures": diagnosis.key_figures,
        "level": percent_level(LEVEL) if diagnosis.answer.scatter is not None else "",
        "cannot_tell": study.report.cannot_tell,
        "misfit": _misfit(study),
        "suggested": [
            {"point": parameters_sentence(parameters, results.swept or ["hosts"]), "repetitions": more}
            for parameters, more in diagnosis.suggested
        ],
        "adds_sizes": any(point in study.unmeasured for point in diagnosis.suggested),
        "next_title": _GAPS if diagnosis.answer.strength == "firm" else "Recommended next trials",
        "next": [] if _settle(diagnosis) else _next(study, diagnosis.suggested),
        "next_queued": diagnosis.next_queued,
        "most_repetitions": most,
        "stamp": diagnosis.stamp,
        "models": (models := _models(study)),
        "predicts": any(fit["chosen"] for model in models for fit in model["fits"]),
        "sizes": _sizes(study),
        "compares": _compares(results, answer),
        "breakdown": breakdown(study),
        "observer": [
            {"point": parameters_sentence(row.parameters, results.swept or ["hosts"]), **observer_words(row.effect)}
            for row in diagnosis.observer
        ],
        "trials": study.trials,
        "of_trials": _of_trials(diagnosis, results),
        "to_repeat": 0 if most else to_repeat,
        "excluded": excluded_trials_of(results.experiment).filter(superseded=False).count() if slowed else 0,
        "unfinished": results.unfinished,
        "as_of": _as_of(diagnosis, results) if results.unfinished else "",
        "slices_left_out": study.slices_left_out,
    }


def _loss_beyond(answer: Answer, facts: Sequence[Fact]) -> Fact | None:
    """Return the fact about what larger sizes lose, if they are as good.

    They are larger than the recommended one. The answer's own causes explain the recommended size then.
    """
    enough = answer.figure("enough")
    if answer.question != "scale" or enough is None:
        return None
    as_good = [figure.value for figure in answer.figures if figure.name in ("best size", "as good")]
    if not any(isinstance(size, float | int) and size > float(enough.value or 0) for size in as_good):
        return None
    losses = [fact for fact in facts if fact.rule in _LOSSES and _largest(fact) > float(enough.value or 0)]
    return min(losses, key=lambda fact: _LOSSES.index(fact.rule), default=None)


def _largest(fact: Fact) -> float:
    """Return the largest size of a fact's evidence."""
    return max((evidence.size for evidence in fact.evidence if evidence.size is not None), default=0.0)


def _as_of(diagnosis: CachedDiagnosis, results: Results) -> str:
    """Return the trials of the answer of a running experiment, and how charts differ."""
    base = ", without drift" if diagnosis.answer.is_without_drift else ""
    as_of = numbers.plural(diagnosis.study.trials, "counted trial")
    return f"as of {as_of}{base}, renewed every {results.renewal_step}; charts and rounds follow every trial"


def _of_trials(diagnosis: CachedDiagnosis, results: Results) -> str:
    """Return the numbers of disturbed and of repeating counted trials, or ""."""
    if not any(fact.rule == _OTHER_LOAD for fact in diagnosis.facts):
        return ""
    counted = results.experiment.trials.counted()
    if counted.count() != diagnosis.study.trials:
        return ""  # of an earlier moment: the numbers would not fit together
    slowed, repeats = counted.filter(disturbed()).count(), counted.repeats().count()
    parts = [
        f"{slowed} {'was' if slowed == 1 else 'were'} disturbed by other load" if slowed else "",
        f"{repeats} {'repeats a disturbed one' if repeats == 1 else 'repeat disturbed ones'}" if repeats else "",
    ]
    return " and ".join(filter(None, parts))


def _to_repeat(diagnosis: CachedDiagnosis, results: Results) -> int:
    """Return the number of disturbed trials that the reason asks to measure again."""
    if results.unfinished or not any(fact.rule == _OTHER_LOAD and fact.next_step for fact in diagnosis.facts):
        return 0
    return results.experiment.trials.disturbed_points().count()


_DIGITS: Final = 3
_LEAST_DECIMAL: Final = 6
"""One microsecond: smaller changes are shown as 0."""
_PART_NAMES: Final = {
    "computing": "Computing, mean of the ranks",
    "descheduled": "Waiting for a CPU core to compute",
    "blocked": "Blocked outside MPI, busiest rank",
    "off": "Off the CPU outside MPI, busiest rank",
    "imbalance": "In MPI, waiting for the busiest rank",
    "communication": "In MPI, busiest rank",
    "on_cpu": "On the CPU",
    "off_cpu": "Off the CPU",
    "launch": "Launch overhead",
    "unexplained": "Not explained",
}
_WITHOUT_CORES: Final = "In MPI, busiest rank, excluding waits for descheduled ranks"
_OUTSIDE: Final = "Outside the program's own time, subtracted"
_OF_MEDIANS: Final = "Difference of medians"
_WHOLE_RUN: Final = ("elapsed_s", "mpi_window_s")
"""Metrics that the parts of every trial add up to: only the sum of medians differs."""


def change_by_part(answer: Answer) -> list[dict[str, str]]:
    """Return the parts of the answer's change, then their sum."""
    names = _part_names(answer)
    return [
        {
            "name": names[part.name],
            "before": numbers.amount(round(part.before_s, _LEAST_DECIMAL), "s", _DIGITS),
            "after": numbers.amount(round(part.after_s, _LEAST_DECIMAL), "s", _DIGITS),
            "change": _change_words(part),
        }
        for part in (*answer.parts[1:], *answer.parts[:1])
    ]


def _part_names(answer: Answer) -> Mapping[str, str]:
    """Return names of the whole and its parts: what "in MPI" and the remainder hold."""
    parts = answer.parts
    if not parts:
        return {}
    whole, remainder = parts[0].name, parts[-1]
    names = _PART_NAMES | {whole: f"Sum: {lower_first(described(whole).label)}{_base(answer, whole)}"}
    if any(part.name == "descheduled" for part in parts):
        names["communication"] = _WITHOUT_CORES
    if whole in _WHOLE_RUN or not any(part.name == "computing" for part in parts):
        names[remainder.name] = _OF_MEDIANS
    elif max(remainder.before_s, remainder.after_s) <= 0:
        names[remainder.name] = _OUTSIDE
    return names


def _base(answer: Answer, metric: str) -> str:
    """Return ", without drift" for the sum of such parts, or ""."""
    decides = any(figure.name == described(metric).label for figure in answer.figures)
    return ", without drift" if answer.is_without_drift and decides else ""


def _change_words(part: ChangePart) -> str:
    low, high = (None if end is None else round(end, _LEAST_DECIMAL) for end in (part.low_s, part.high_s))
    interval = None if low is None else Interval(low, high, 0.95, "")
    return numbers.with_interval(round(part.change_s, _LEAST_DECIMAL), interval, "s", _DIGITS)


def _more_title(count: int, fixes: Sequence[FindingLink], parts: Sequence[Mapping[str, str]]) -> str:
    words = (f"more findings ({count})" if count else "", "fixes" if fixes else "", "change by part" if parts else "")
    return first_up(joined([*filter(None, words)] or [""]))


def _settle(diagnosis: CachedDiagnosis) -> str:
    missing = diagnosis.answer.missing
    if missing is None:
        return ""
    first = "on idle machines, " if any(fact.rule == _OTHER_LOAD and fact.next_step for fact in diagnosis.facts) else ""
    last = f" ({numbers.duration(missing.seconds)})" if missing.seconds else ""
    return f"{first}{missing.words}{last}"


def _cause(cause: Cause, panels: Mapping[str, tuple[str, str]], answer: Answer) -> FindingLink:
    """Return a cause; parts above an ideal link to the table that has the ideal."""
    statement = cause.statement[:1].upper() + cause.statement[1:]
    is_part = cause.part in {part.name for part in answer.parts[1:]}
    is_above_ideal = is_part and answer.compared[0].startswith(IDEAL_FROM)
    shown_by = _BY_PART if is_above_ideal else _panel(cause.chart, panels)
    return FindingLink(f"{statement}.", *shown_by, cause.at)


def _find(fact: Fact, results: Results, panels: Mapping[str, tuple[str, str]]) -> FindingLink:
    shown_by = _traffic_of_a_trial(fact, results) if fact.chart == "matrix" else _panel(fact.chart, panels)
    term = f"finding.{fact.rule}"
    weak = _STRENGTH[fact.strength]
    return FindingLink(fact.statement, *shown_by, fact.at, fact.caveat, fact.next_step, weak, words_of(term), term)


def _panel(chart: str, panels: Mapping[str, tuple[str, str]]) -> tuple[str, str]:
    """Return (title, address) of the charts that show a finding, the best first."""
    if chart == "link":
        return "Setup", "#setup"
    shown_as = (panels[name] for name in _PANELS.get(chart, (chart,)) if name in panels)
    return next(shown_as, ("Configurations", "#configurations"))


def _traffic_of_a_trial(fact: Fact, results: Results) -> tuple[str, str]:
    """Return the first counted trial of the size, because matrices exist per trial."""
    sizes = {evidence.size for evidence in fact.evidence} - {None}
    for row in results.rows:
        # Flagged captures have no packets.
        trials = row.trial_ids.get("packets") or row.trial_ids.get("elapsed_s", [])
        if trials and (not sizes or row.hosts in sizes) and _agrees(row.parameters, fact.where):
            return f"Traffic of trial {trials[0]}", reverse("trial", args=[trials[0]])
    return "Configurations", "#configurations"


def _agrees(parameters: Mapping[str, Any], where: Mapping[str, Any]) -> bool:
    return all(parameters.get(name) == value for name, value in where.items())


def where_words(where: Mapping[str, Any]) -> str:
    """Return the slice of a larger sweep, 'MTU 1500, delay 2 ms', or ''."""
    return parameters_sentence(where, list(where))


def _time_models(diagnosis: Diagnosis) -> list[tuple[str, Model]]:
    return [
        (where_words(part.where), part.models["elapsed_s"]) for part in diagnosis.slices if "elapsed_s" in part.models
    ]


def _best_words(best: Estimate, axis: str, extrapolated: bool) -> str:
    if not isfinite(best.value):
        return f"more than the measured {axis}: the model has no optimum"
    words = sizes(whole_size(best.value), axis)
    if best.low is not None and best.high is not None:
        words += f", 95 % CI {whole_sizes(best.low, best.high)}"
    elif best.low is not None:
        words += f", at least {max(1, floor(best.low))}"
    return f"{words}; extrapolated" if extrapolated else words


def _misfit(diagnosis: Diagnosis) -> str:
    for where, model in _time_models(diagnosis):
        misfit = None if model.chosen is None else model.chosen.misfit
        if misfit is not None and misfit.significant:
            by = numbers.amount(abs(misfit.residual), "s")
            at = sizes(misfit.size, diagnosis.axis) + (f", {where}" if where else "")
            return f"The fit misses by {by} at {at}, more than trials scatter: use the prediction as a guide."
    return ""


def _next(diagnosis: Diagnosis, suggested: Sequence[tuple[Mapping[str, Any], int]]) -> list[dict[str, Any]]:
    return [
        {
            "point": parameters_sentence(point.parameters, [diagnosis.axis, *part.where]),
            "repetitions": point.repetitions,
            "reason": point.reason,
        }
        for part in diagnosis.slices
        for point in part.next
        if (point.parameters, point.repetitions) in suggested
    ]


def _models(diagnosis: Diagnosis) -> list[dict[str, Any]]:
    return [
        {
            "metric": find(metric).label,
            "at": where_words(part.where),
            "reason": model.reason,
            "fits": [_fit(fit, model, find(metric).unit, diagnosis.axis) for fit in model.fits],
        }
        for part in diagnosis.slices
        for metric, model in part.models.items()
    ]


def _fit(fit: FittedModel, model: Model, unit: str, axis: str) -> dict[str, Any]:
    timed = unit == "s" and model.metric == "elapsed_s"
    best = (
        fit.best_size if timed and model.chosen is not None else None
    )  # a model that does not predict has no best size
    chosen = model.chosen is not None and fit.model == model.chosen.model
    extrapolated = model.extrapolated and chosen
    return {
        "title": fit.title,
        "chosen": chosen,
        "formula": fit.formula,
        "unit": "" if unit in ("", "1", numbers.SHARE) else unit,
        # One decimal for all, because their differences matter.
        "aicc": numbers.NOTHING if fit.aicc is None else numbers.fixed(fit.aicc, 1),
        "cv": numbers.amount(fit.cv_error, numbers.SHARE),
        "best": _best_words(best, axis, extrapolated) if best is not None else "",
    }


def _compares(results: Results, answer: Answer) -> str:
    """Return what the answer compares, if not the measured elapsed time, or ""."""
    if results.deciding is None:
        return ""
    base = ", without drift" if answer.is_without_drift else ""
    return f"{lower_first(find(results.deciding).label)}{base}" if base or results.deciding != "elapsed_s" else ""


def _sizes(diagnosis: Diagnosis) -> dict[str, Any]:
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
    interval = next((row.elapsed.interval for part in parts for row in part.rows if row.elapsed.interval), None)
    intervals = "intervals of the answer" if interval else ""
    if interval is not None and interval.level == _ALONE:
        intervals = "95 % intervals from the scatter of both points"
    return {
        "names": [parameter_label(name) for name in names],
        "rows": rows if len(rows) > 1 else [],
        "cost_unit": first.cost_unit if first else "",
        "speed_up": SCALED if diagnosis.kind == "weak" else SPEED_UP,
        "intervals": intervals,
        "reference": value_words(diagnosis.axis, int(first.reference)) if first else "",
    }


def observer_words(effect: ObserverEffect) -> dict[str, str]:
    """Return an observer effect in words, with its interval and both times."""
    ends = () if effect.low is None or effect.high is None else (1 + effect.low, 1 + effect.high)
    difference, *bounds = numbers.changes(1 + effect.relative, *ends)
    if bounds:
        difference += f" (95 % CI {' to '.join(bounds)})"
    return {
        "difference": difference,
        "with": numbers.amount(effect.with_s, "s"),
        "without": f"{numbers.amount(effect.without_s, 's')}, n = {effect.controls}",
        "means": "within the scatter of the repetitions"
        if effect.within_scatter
        else "outside the scatter of the repetitions",
    }


def _ratio(estimate: Estimate, unit: str = "") -> str:
    return numbers.with_interval(estimate.value, estimate.interval, unit, 3)
