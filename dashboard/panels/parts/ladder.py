"""The tuning ladder: ordered steps with their changes and gains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analysis import numbers
from analysis.conclusions.observations.ladder import Gain, Step, Trialled, ladder
from analysis.statistics import Interval
from dashboard.charts.parts import Scale
from dashboard.charts.studies import LadderLine, ladder_chart
from dashboard.labels import parameter_label, value_words
from dashboard.panels.parts.measured import Measured, ResultSource
from experiments.metrics import find
from experiments.selectors.designs import is_ladder


def ladder_part(measured: Measured, targets: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the steps of every source; None unless parameters advance together."""
    metric = measured.deciding
    if metric is None or not is_ladder(measured.main.with_metric(metric)):
        return None
    higher = measured.higher_is_better(metric)
    sources = [s for s in measured.sources if s is measured.main or is_ladder(s.with_metric(metric))]

    def interval_of(over: Trialled, under: Trialled) -> Interval | None:
        return measured.interval(metric, over.parameters, under.parameters)

    ladders = [
        (source, ladder(_steps(source, metric), higher_is_better=higher, ratio_of=interval_of)) for source in sources
    ]
    description = find(metric, measured.main.experiment.specification)
    scale = Scale.of([step.value for _, steps in ladders for step in steps], description.unit)
    return {
        "metric": description.label,
        "unit": scale.unit,
        "tables": [
            {
                "name": source.name,
                "rows": [_row(step, scale) for step in steps],
                "intervals": any(step.against_first and step.against_first.interval for step in steps),
            }
            for source, steps in ladders
        ],
        "chart": ladder_chart(
            [
                LadderLine(source.name, steps, [row.pk for row in source.with_metric(metric)])
                for source, steps in ladders
            ],
            quantity=description.label,
            unit=description.unit,
        ),
    }


def _steps(source: ResultSource, metric: str) -> list[Trialled]:
    return [Trialled(row.parameters, row.values[metric]) for row in source.with_metric(metric)]


def _row(step: Step, scale: Scale) -> dict[str, Any]:
    return {
        "number": step.number,
        "value": numbers.significant(scale(step.value)),
        "changes": [
            f"{parameter_label(name)} {value_words(name, before)} → {value_words(name, after)}"
            for name, (before, after) in step.changed.items()
        ],
        "previous": gain_words(step.against_previous),
        "first": gain_words(step.against_first),
        "best": step.is_best_so_far,
        "best_so_far": numbers.significant(scale(step.best_so_far)),
    }


def gain_words(gain: Gain | None) -> str:
    """Return a gain as text: '1.11 (1.09 to 1.12)'."""
    if gain is None:
        return numbers.NOTHING
    return numbers.with_interval(gain.factor, gain.interval, digits=3)
