"""The experiment as text: the table of configurations that ``script/run`` prints."""

from __future__ import annotations

from rich.table import Table

from experiments.metrics import HEADLINE, find
from experiments.models import Experiment, State
from experiments.parameters import shown
from experiments.selectors import ConfigurationRow, configuration_rows, swept_parameters


def configurations_table(experiment: Experiment) -> Table:
    """Return one row per configuration: swept parameters, headline metrics (median and range of the counted trials)."""
    rows = configuration_rows(experiment, HEADLINE)
    swept = swept_parameters(rows) or ["hosts"]
    table = Table(title="median (smallest to largest) of the finished trials", title_justify="left", title_style="dim")
    for name in swept:
        table.add_column(name, justify="right")
    for identifier in HEADLINE:
        metric = find(identifier)
        table.add_column(f"{metric.label}\n{metric.unit}", justify="right")
    table.add_column("finished", justify="right")
    for row in rows:
        finished = sum(trial.state == State.FINISHED for trial in row.trials)
        table.add_row(
            *(shown(name, row.parameters.get(name)) for name in swept),
            *(_cell(row, identifier) for identifier in HEADLINE),
            f"{finished}/{len(row.trials)}",
        )
    return table


def failures(experiment: Experiment) -> list[str]:
    """Return a paragraph for every current trial that is not FINISHED."""
    trials = experiment.trials.current().exclude(state=State.FINISHED).select_related("configuration")
    return [
        f"trial {t.pk} ({t.configuration.hosts} hosts, repetition {t.repetition}) "
        f"{State(t.state).label.lower()}: {t.message or 'no message'}"
        for t in trials.order_by("position")
    ]


def _cell(row: ConfigurationRow, metric: str) -> str:
    median, spread = row.median(metric), row.range(metric)
    if median is None or spread is None:
        return "–"
    if len(row.values[metric]) == 1:
        return _number(median)
    return f"{_number(median)}\n({_number(spread[0])} to {_number(spread[1])})"


def _number(value: float) -> str:
    return f"{value:,.0f}".replace(",", "\u202f") if abs(value) >= 10_000 else f"{value:.4g}"
