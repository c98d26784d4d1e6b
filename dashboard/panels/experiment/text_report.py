"""The experiment as text for ``script/run``: the table of configurations."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from analysis.numbers import NOTHING, Scale, between, plural, significant
from dashboard.labels import value_words
from experiments.metrics import HEADLINE, deciding_metric, find
from experiments.models import Experiment, State
from experiments.models.states import BUDGET_SPENT
from experiments.selectors import ConfigurationRow, configuration_rows, swept_parameters


def configurations_table(experiment: Experiment) -> Table:
    """Return one row per configuration: parameters, deciding and headline metrics."""
    decides = deciding_metric(experiment.workload, experiment.specification)
    metrics = HEADLINE if not decides or decides in HEADLINE else (decides, *HEADLINE)
    rows = configuration_rows(experiment, metrics)
    swept = swept_parameters(rows) or ["hosts"]
    table = Table(
        title="Median and, below it, the range of the finished trials",
        title_justify="left",
        title_style="dim",
        caption=_left_out(experiment),
        caption_justify="left",
    )
    for name in swept:
        table.add_column(name, justify="right", no_wrap=True)
    described = {identifier: find(identifier, experiment.specification) for identifier in metrics}
    scales = {
        identifier: _scale(rows, identifier, metric_description.unit)
        for identifier, metric_description in described.items()
    }
    for identifier, scale in scales.items():
        table.add_column(f"{described[identifier].label}\n{scale.unit}", justify="right", no_wrap=True)
    table.add_column("finished\ntrials", justify="right", no_wrap=True)
    for row in rows:
        finished = sum(trial.state == State.FINISHED for trial in row.trials)
        table.add_row(
            *(value_words(name, row.parameters.get(name)) for name in swept),
            *(_cell(row, identifier, scale) for identifier, scale in scales.items()),
            f"{finished} of {len(row.trials)}",
        )
    return table


def _left_out(experiment: Experiment) -> str | None:
    flagged = experiment.trials.flagged().count()
    if not flagged:
        return None
    return f"The traffic of {plural(flagged, 'flagged trial')} is excluded."


def failures(experiment: Experiment) -> list[str]:
    """Return a paragraph for each current trial that is not FINISHED.

    Those that a spent budget cancelled are as requested.
    """
    trials = experiment.trials.current().exclude(state=State.FINISHED).select_related("configuration")
    trials = trials.exclude(state=State.CANCELLED, message__startswith=BUDGET_SPENT)
    return [
        f"trial {t.pk} ({plural(t.configuration.hosts, 'host')}, repetition {t.repetition}) "
        f"{State(t.state).label.lower()}: {t.message or 'no message'}"
        for t in trials.order_by("position")
    ]


def _scale(rows: Sequence[ConfigurationRow], metric: str, unit: str) -> Scale:
    return Scale.of([value for row in rows if (value := row.median(metric))], unit)


def _cell(row: ConfigurationRow, metric: str, scale: Scale) -> str:
    median, spread = row.median(metric), row.range(metric)
    if median is None or spread is None:
        return NOTHING
    text = significant(scale(median))
    if len(row.values[metric]) == 1:
        return text
    return f"{text}\n[dim]{between(scale(spread[0]), scale(spread[1]), digits=4)}[/]"
