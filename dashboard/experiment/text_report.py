"""The experiment as text: the table of configurations that ``script/run`` prints."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from analysis.numbers import NOTHING, prefix_exponent, prefixed_unit, significant, takes_prefix
from experiments.metrics import HEADLINE, find
from experiments.models import Experiment, State
from experiments.selectors import ConfigurationRow, configuration_rows, swept_parameters
from experiments.spec.parameters import shown


def configurations_table(experiment: Experiment) -> Table:
    """Return one row per configuration: swept parameters, headline metrics (median and range of the counted trials)."""
    rows = configuration_rows(experiment, HEADLINE)
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
    exponents = {identifier: _exponent(rows, identifier) for identifier in HEADLINE}
    for identifier in HEADLINE:
        metric = find(identifier)
        unit = prefixed_unit(metric.unit, exponents[identifier]) if metric.unit != "1" else ""
        table.add_column(f"{metric.label}\n{unit}", justify="right", no_wrap=True)
    table.add_column("finished\ntrials", justify="right", no_wrap=True)
    for row in rows:
        finished = sum(trial.state == State.FINISHED for trial in row.trials)
        table.add_row(
            *(shown(name, row.parameters.get(name)) for name in swept),
            *(_cell(row, identifier, exponents[identifier]) for identifier in HEADLINE),
            f"{finished} of {len(row.trials)}",
        )
    return table


def _left_out(experiment: Experiment) -> str | None:
    flagged = experiment.trials.flagged().count()
    if not flagged:
        return None
    return f"The traffic of {flagged} flagged trial{'s'[: flagged > 1]} is left out; their times count."


def failures(experiment: Experiment) -> list[str]:
    """Return a paragraph for every current trial that is not FINISHED."""
    trials = experiment.trials.current().exclude(state=State.FINISHED).select_related("configuration")
    return [
        f"trial {t.pk} ({t.configuration.hosts} hosts, repetition {t.repetition}) "
        f"{State(t.state).label.lower()}: {t.message or 'no message'}"
        for t in trials.order_by("position")
    ]


def _exponent(rows: Sequence[ConfigurationRow], metric: str) -> int:
    """Return one power of ten for a whole column, so that its numbers can be compared at a glance."""
    if not takes_prefix(find(metric).unit):
        return 0
    medians = [value for row in rows if (value := row.median(metric))]
    exponent = prefix_exponent(max(medians)) if medians else 0
    return min(exponent, 0) if find(metric).unit == "s" else exponent


def _cell(row: ConfigurationRow, metric: str, exponent: int) -> str:
    median, spread = row.median(metric), row.range(metric)
    if median is None or spread is None:
        return NOTHING
    scale = 10.0**exponent
    text = significant(median / scale)
    if len(row.values[metric]) == 1:
        return text
    return f"{text}\n[dim]{significant(spread[0] / scale, 3)} to {significant(spread[1] / scale, 3)}[/]"
