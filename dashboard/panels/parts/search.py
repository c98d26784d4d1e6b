"""The search for the best settings: its trials, confirmed gains, importance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analysis import numbers
from analysis.conclusions.observations.scatter import LEVEL
from analysis.conclusions.wording import percent_level
from analysis.search import FEWEST_FOR_IMPORTANCE, importance
from analysis.statistics import Interval
from dashboard.charts.search import best_so_far, importance_chart
from dashboard.labels import parameter_label, parameters_sentence, value_words
from dashboard.panels.parts.measured import Measured
from experiments.metrics import find
from experiments.selectors import ConfigurationRow
from experiments.selectors.searches import search_of, search_trials, searching_spec
from experiments.specification import ExperimentSpec


def search_part(measured: Measured, targets: Mapping[str, str]) -> dict[str, Any] | None:
    """Return gains, candidates and importance; None unless settings are searched."""
    experiment = measured.main.experiment
    spec = searching_spec(experiment)
    if spec is None:
        return None
    search, trials = search_of(experiment, spec), search_trials(experiment, spec)
    searched, is_rate = search.searched, search.higher_is_better
    names = list(spec.sweep)
    gains = [searched.looked(t.result.settings, higher_is_better=is_rate) if t.result.value else None for t in trials]
    rows = measured.main.with_metric(spec.optimised)
    start = next((row for row in rows if searched.is_start(row.parameters)), None)
    confirmed = [] if start is None else [_confirmed(measured, spec, row, start) for row in rows if row is not start]
    candidates = sorted((row for row in confirmed if row["gain"]), key=lambda row: -row["gain"])
    for row in candidates:
        looked = searched.looked(row["parameters"], higher_is_better=is_rate)
        row["looked"] = numbers.NOTHING if looked is None else numbers.significant(looked, 3)
    shares = importance(search.space, searched.results, higher_is_better=is_rate)
    words = [parameters_sentence(t.result.settings, names, experiment.workload) for t in trials]
    best = candidates[0]["parameters"] if candidates and candidates[0]["gain"] > 1 else None
    return {
        "metric": find(spec.optimised, experiment.specification).label,
        "chart": best_so_far(
            list(zip(words, gains, strict=True)),
            [(row["words"], row["gain"], *row["ends"]) for row in candidates if row["ends"]],
        ),
        "candidates": candidates,
        "level": percent_level(LEVEL),
        "repetitions": 0 if start is None else len(start.values[spec.optimised]),
        # The answer names settings best only then.
        "is_better": bool(candidates and candidates[0]["ends"] and candidates[0]["ends"][0] > 1),
        "settings": [
            (parameter_label(n, experiment.workload), value_words(n, best[n]), value_words(n, searched.start[n]))
            for n in names
        ]
        if best
        else [],
        "importance": importance_chart({parameter_label(n, experiment.workload): share for n, share in shares.items()})
        if shares
        else None,
        "fewest": FEWEST_FOR_IMPORTANCE,
        "measured": sum(1 for trial in trials if trial.result.value is not None),
        "combinations": search.space.size,
        "failed": [
            {"pk": trial.pk, "words": text, "message": trial.message.partition("\n")[0]}
            for trial, text in zip(trials, words, strict=True)
            if trial.result.value is None
        ],
    }


def _confirmed(
    measured: Measured, spec: ExperimentSpec, row: ConfigurationRow, start: ConfigurationRow
) -> dict[str, Any]:
    """Return a candidate with its gain over the start and the interval of the answer."""
    metric = spec.optimised
    over, under = (row, start) if measured.higher_is_better(metric) else (start, row)
    interval: Interval | None = measured.interval(metric, over.parameters, under.parameters)
    top, bottom = over.median(metric), under.median(metric)
    gain = top / bottom if top and bottom else None
    has_ends = interval is not None and interval.low is not None and interval.high is not None
    return {
        "parameters": row.parameters,
        "words": parameters_sentence(row.parameters, list(spec.sweep), measured.main.experiment.workload),
        "gain": gain,
        "ends": (interval.low, interval.high) if interval is not None and has_ends else (),
        "gain_words": numbers.NOTHING if gain is None else numbers.with_interval(gain, interval, digits=3),
        "repetitions": len(row.values[metric]),
    }
