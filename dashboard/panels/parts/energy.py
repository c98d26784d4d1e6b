"""Energy against time: the trade-off, energy by state of the ranks, mean power."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from analysis import numbers
from analysis.conclusions import ExperimentIntervals
from analysis.conclusions.wording import joined
from analysis.statistics import Interval
from dashboard.charts.energy import Compromise, trade_off, with_idle_power
from dashboard.charts.parts import Figure, Line
from dashboard.charts.scaling import time_parts
from dashboard.charts.sweep import over_parameter
from dashboard.labels import parameters_sentence
from dashboard.panels.experiment.axes import groups_without
from dashboard.panels.experiment.scaling import MOST_BARS, TIME, WINDOW, seconds_inside_mpi
from dashboard.panels.experiment.tables import Column
from dashboard.panels.parts.measured import Measured
from experiments.metrics import deciding_metric, find
from experiments.models import METRIC_SOURCES, Cluster, Trial
from experiments.selectors import ConfigurationRow, swept_parameters
from experiments.selectors.diagnosis import intervals_of

ENERGY: Final = "energy_j"
POWER: Final = "power_mean_w"
DELAY: Final = "energy_delay_js"
_CHOICES: Final = {TIME: "Time", ENERGY: "Energy", DELAY: "Energy × delay"}
_COLUMNS: Final = (TIME, ENERGY, POWER, "energy_per_result_j", DELAY)


def energy_part(measured: Measured, targets: Mapping[str, str]) -> dict[str, Any] | None:
    """Return charts and table of time and energy; None below two configurations."""
    rows = [row for row in measured.main.with_metric(ENERGY) if row.values.get(TIME)]
    rows = [row for row in rows if min(*row.values[ENERGY], *row.values[TIME]) > 0]
    if len(rows) < 2 or measured.main.experiment.published:
        return None
    rows.sort(key=lambda row: row.hosts)
    swept = swept_parameters(measured.main.rows)
    intervals = intervals_of(measured.main.experiment, TIME, ENERGY)
    points = _points(rows, [parameters_sentence(row.parameters, swept or ["hosts"]) for row in rows], intervals)
    choices = _choices(measured, rows, points)
    return {
        "trade_off": trade_off(points),
        "table": _table(rows, points, intervals, choices),
        "states": _states(rows[:MOST_BARS], [point.name for point in points[:MOST_BARS]]),
        "power": _power(rows, swept, measured.main.experiment.cluster),
        "sources": _sources(rows),
        "trials": sum(len(row.values[ENERGY]) for row in rows),
        "of": sum(len(row.values.get(TIME, ())) for row in measured.main.rows),
    }


def _sources(rows: Sequence[ConfigurationRow]) -> str:
    """Return the sources of the trials' energy with their trust; "" if unknown."""
    trials = Trial.objects.filter(pk__in=[pk for row in rows for pk in row.trial_ids[ENERGY]])
    sources = {
        f"{name} ({source['trust']})": None
        for of_trial in trials.order_by("pk").values_list(f"conditions__{METRIC_SOURCES}", flat=True)
        for name, source in (of_trial or {}).items()
        if ENERGY in source["metrics"]
    }
    return "; ".join(sources)


def _points(
    rows: Sequence[ConfigurationRow], names: Sequence[str], intervals: Sequence[ExperimentIntervals]
) -> list[Compromise]:
    medians = [(row.median(TIME) or 0.0, row.median(ENERGY) or 0.0) for row in rows]
    points = []
    for row, name, (time_s, energy_j) in zip(rows, names, medians, strict=True):
        beaten = any(t <= time_s and e <= energy_j and (t, e) != (time_s, energy_j) for t, e in medians)
        time, energy = (of_metric.value(row.parameters) for of_metric in intervals)
        points.append(Compromise(name, row.pk, time_s, energy_j, time, energy, not beaten))
    return points


def _table(
    rows: Sequence[ConfigurationRow],
    points: Sequence[Compromise],
    intervals: Sequence[ExperimentIntervals],
    choices: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return each configuration relative to the fastest one."""
    time, energy = intervals
    chosen = next(choice["metric"] for choice in choices if choice["is_chosen"])
    fastest = min(range(len(rows)), key=lambda i: points[i].time_s)
    least = min(range(len(rows)), key=lambda i: points[i].energy_j)
    delays = [row.median(DELAY) for row in rows]
    least_delay = min((d for d in delays if d is not None), default=None)
    columns = [Column.of(metric, rows) for metric in _COLUMNS if any(row.values.get(metric) for row in rows)]
    table = []
    for i, (row, point) in enumerate(zip(rows, points, strict=True)):
        words = [
            *(["least time"] if i == fastest else []),
            *(["least energy"] if i == least else []),
            *(["least energy × delay"] if delays[i] is not None and delays[i] == least_delay else []),
        ]
        least_of = [metric for metric, at in ((TIME, fastest), (ENERGY, least)) if i == at]
        least_of += [DELAY] if delays[i] is not None and delays[i] == least_delay else []
        base = rows[fastest].parameters
        relative = {
            TIME: _change(point.time_s / points[fastest].time_s, time.ratio(row.parameters, base)),
            ENERGY: _change(point.energy_j / points[fastest].energy_j, energy.ratio(row.parameters, base)),
        }
        table.append(
            {
                "name": point.name,
                "cells": [
                    (column.cell(row)[0], "" if i == fastest else relative.get(column.metric, "")) for column in columns
                ],
                "least": least_of,
                "is_best": chosen in least_of,
                "is_on_line": point.is_on_line,
                "words": words or ["between" if point.is_on_line else "slower, more energy"],
            }
        )
    return {"columns": columns, "rows": table, "base": points[fastest].name, "choices": choices}


def _choices(
    measured: Measured, rows: Sequence[ConfigurationRow], points: Sequence[Compromise]
) -> list[dict[str, Any]]:
    """Return the metrics that may decide, with the configuration of the least."""
    experiment = measured.main.experiment
    chosen = deciding_metric(experiment.workload, experiment.specification)
    metrics = [metric for metric in (TIME, ENERGY, DELAY) if all(row.values.get(metric) for row in rows)]
    choices = []
    for metric, intervals in zip(metrics, intervals_of(experiment, *metrics), strict=True):
        medians = [row.median(metric) or 0.0 for row in rows]
        best = min(range(len(rows)), key=medians.__getitem__)
        ratios = {i: intervals.ratio(row.parameters, rows[best].parameters) for i, row in enumerate(rows) if i != best}
        unclear = [points[i].name for i, ratio in ratios.items() if ratio and ratio.low and ratio.low <= 1]
        label = _CHOICES[metric]
        words = f"Least {label.lower()}: {points[best].name}, {numbers.amount(medians[best], find(metric).unit, 3)}."
        words += f" No clear change: {joined(unclear)}." if unclear else ""
        is_chosen = metric == (chosen if chosen in metrics else TIME)
        choices.append({"metric": metric, "label": label, "words": words, "is_chosen": is_chosen})
    return choices


def _change(ratio: float, interval: Interval | None) -> str:
    """Return "−40 % (−44 to −35)"."""
    ends = ""
    if interval is not None and interval.low and interval.high:
        ends = " ({} to {})".format(*(numbers.signed(100 * (end - 1), 0) for end in (interval.low, interval.high)))
    return f"{numbers.with_unit(numbers.signed(100 * (ratio - 1), 0), '%')}{ends}"


def _states(rows: Sequence[ConfigurationRow], names: Sequence[str]) -> Figure | None:
    """Return energy x share of time; None without the profile of every trial."""
    if not all(row.values.get(WINDOW) for row in rows):
        return None
    watts = [(row.median(ENERGY) or 0.0) / (row.median(TIME) or 1.0) for row in rows]
    parts = {
        name: [None if s is None else s * w for s, w in zip(seconds, watts, strict=True)]
        for name, seconds in seconds_inside_mpi(rows).items()
    }
    return time_parts(names, parts, of=[row.pk for row in rows], quantity=("Energy", "J"))


def _power(rows: Sequence[ConfigurationRow], swept: Sequence[str], cluster: Cluster | None) -> Figure | None:
    """Return the mean power of a host over the hosts, and that without a trial."""
    rows = [row for row in rows if row.hosts and row.values.get(POWER)]
    if "hosts" not in swept or not rows:
        return None
    lines = [
        Line(
            name or "Measured",
            [row.hosts for row in members],
            [[watts / row.hosts for watts in row.values[POWER]] for row in members],
            [row.pk for row in members],
            [row.trial_ids[POWER] for row in members],
        )
        for name, members in groups_without(rows, swept, "hosts").items()
    ]
    figure = over_parameter(lines, quantity="Power of each host", unit="W", parameter="Hosts")
    idle = None if cluster is None else cluster.facts.get("idle_watts_per_host")
    return with_idle_power(figure, float(idle), lines) if idle else figure
