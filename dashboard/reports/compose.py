"""Generated report of an experiment, to be edited."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from analysis import numbers
from dashboard.labels import fact_rows, parameter_label, value_words, workload_title
from dashboard.panels.experiment.results import Results
from dashboard.reports.markdown import plain
from dashboard.reports.parts import Source, causes_in_sentences
from experiments.errors import InvalidSpec
from experiments.models import FAILED, Experiment
from experiments.selectors import excluded_trials
from experiments.selectors.diagnosis import CachedDiagnosis, diagnosis_of
from experiments.specification import design
from experiments.specification.ranges import as_written

_MOST_CHARTS: Final = 4
_MOST_LIMITATIONS: Final = 12


def report_of(experiment: Experiment, source: Source) -> str:
    """Return a report with live parts, in the words of the experiment's page."""
    diagnosis, results = diagnosis_of(experiment), source.results(experiment)
    parts = [
        "## Question",
        f"> {plain(diagnosis.answer.asks)}",
        f"{{{{ answer {experiment.slug} }}}}",
        "## Set-up",
        _table(_setup(experiment, results)),
        "## What was measured",
        f"{{{{ table {experiment.slug} configurations }}}}",
        "## Figures",
        *(f"{{{{ chart {experiment.slug} {name} }}}}" for name in _figures(experiment, source)),
        "## Conclusions",
        _list(_conclusions(experiment, diagnosis), ordered=True) or "No trial has finished yet.",
        "## Limitations",
        _list(_limitations(experiment, results, diagnosis)) or "None known.",
    ]
    return "\n\n".join(parts) + "\n"


def _figures(experiment: Experiment, source: Source) -> list[str]:
    """Return the charts with data, those that answer the question first."""
    answered_by = source.results(experiment).answered_by
    sections = sorted(source.results(experiment).panels(), key=lambda section: section.element != answered_by)
    drawn = [chart.element for section in sections for chart in section.charts if chart.figure.get("data")]
    return drawn[:_MOST_CHARTS]


def _setup(experiment: Experiment, results: Results) -> list[tuple[str, str]]:
    rows = [("Workload", workload_title(experiment.workload))]
    if experiment.published:
        source = {k: v for k, v in experiment.source.items() if k not in ("notes", "statements")}
        return [*rows, *((name.capitalize(), value) for name, value in fact_rows(source))]
    if experiment.cluster is not None:
        rows.append(("Cluster", experiment.cluster.name))
    constants = {**experiment.specification.get("parameters", {})}
    workload = experiment.workload
    rows += [(parameter_label(n, workload), value_words(n, value, workload)) for n, value in constants.items()]
    for name, values in experiment.specification.get("sweep", {}).items():
        words = (
            [value_words(name, value, workload) for value in values]
            if isinstance(values, list)
            else [_range_words(values)]
        )
        rows.append((parameter_label(name, workload), ", ".join(words)))
    try:
        spec = experiment.spec
    except InvalidSpec:
        spec = None  # of an earlier version
    if spec is not None and experiment.cluster is not None and not any(n.startswith("link.") for n in spec.sweep):
        rows.append(("Link", experiment.cluster.traits.link_in_words(design.link_of(design.first_point(spec)))))
    if spec is not None:
        order = f"{spec.order}, seed {spec.seed}" if spec.order == "randomised" else str(spec.order)
        repetitions = str(spec.at_least) if spec.goal is None else f"{spec.at_least} to {spec.at_most}"
        rows += [("Repetitions", repetitions), ("Order", order)]
    trials = sum(len(row.trials) for row in results.rows)
    rows.append(("Trials", f"{numbers.grouped(trials)} of {numbers.plural(len(results.rows), 'configuration')}"))
    rows.append(("Specification", f"revision {experiment.version}, sha256 {experiment.specification_hash}"))
    return rows


def _conclusions(experiment: Experiment, diagnosis: CachedDiagnosis) -> list[str]:
    answer = [] if diagnosis.answer.strength == "open" and not diagnosis.answer.figures else [diagnosis.answer.sentence]
    printed = experiment.source.get("statements", []) if experiment.published else []
    return list(dict.fromkeys([*answer, *causes_in_sentences(diagnosis), *printed]))


def _limitations(experiment: Experiment, results: Results, diagnosis: CachedDiagnosis) -> list[str]:
    if experiment.published:
        return list(experiment.source.get("notes", []))
    failures = results.failures()
    failed = [mark for _, mark in failures if mark.state in FAILED]
    flagged = len(failures) - len(failed)
    excluded = len(excluded_trials(experiment))
    limitations = []
    if experiment.cluster is not None and experiment.cluster.traits.hosts_are_virtual:
        limitations.append("The hosts are virtual and share the cores of one machine.")
    if failed:
        limitations.append(f"{numbers.plural(len(failed), 'trial')} failed without a result.")
    if flagged:
        limitations.append(f"The traffic of {numbers.plural(flagged, 'flagged trial')} is excluded.")
    if excluded:
        limitations.append(f"{numbers.plural(excluded, 'trial is', 'trials are')} excluded from the statistics.")
    limitations += [fact.statement for fact in diagnosis.facts if fact.rule == "changed_program"]
    limitations += [fact.caveat for fact in diagnosis.facts if fact.caveat]
    limitations += diagnosis.study.report.cannot_tell
    return list(dict.fromkeys(limitations))[:_MOST_LIMITATIONS]


def _list(lines: Iterable[str], *, ordered: bool = False) -> str:
    return "\n".join(f"{f'{number}.' if ordered else '-'} {plain(line)}" for number, line in enumerate(lines, 1))


def _table(rows: Iterable[tuple[str, Any]]) -> str:
    return "\n".join(["| | |", "|---|---|", *(f"| {plain(name)} | {plain(value)} |" for name, value in rows)])


def _range_words(written: Any) -> str:
    """Return a range of values, or of sizes that rounds choose, as users write it."""
    return f"chosen from {as_written(written)}" if isinstance(written, dict) else str(written)
