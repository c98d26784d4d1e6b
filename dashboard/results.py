"""From an experiment's rows to the charts and the table of its page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor, log10
from typing import Any

from analysis.catalogue import METRICS as METRIC_CATALOGUE
from dashboard import numbers
from dashboard.charts import MOST_SERIES, Figure, Line, Published, over_parameter
from dashboard.charts.parts import Scale
from dashboard.words import parameter_label, parameters_sentence, trial_role, value_words
from experiments.metrics import HEADLINE, find
from experiments.models import Experiment
from experiments.selectors import ConfigurationRow, TrialMark, configuration_rows, published_like, swept_parameters

METRICS = tuple(dict.fromkeys((*HEADLINE, "cpu_s", "cpu_mean_rank_s")))
_AXIS_UNITS = {"link.bandwidth": "bit/s", "link.delay": "s", "link.jitter": "s", "link.mtu": "B"}
_FLAGGED = ("degraded", "unusable")


@dataclass(frozen=True)
class Chart:
    """A panel: `element` names it in the page, `published` is None (nothing to show), True or False (shown or not)."""

    element: str
    title: str
    figure: Figure
    published: bool | None


@dataclass(frozen=True)
class Overlay:
    """Published results of the same workload, over the same parameter."""

    name: str
    experiment: Experiment
    rows: Sequence[ConfigurationRow]


class Results:
    """An experiment's configurations, and what is published about its workload. Six queries, one study published."""

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment
        self.rows = configuration_rows(experiment, METRICS)
        self.swept = swept_parameters(self.rows)
        self.parameter = self.swept[0] if self.swept else "hosts"
        self.overlays = [] if experiment.published else self._overlays()

    def _overlays(self) -> list[Overlay]:
        found = []
        for published in published_like(self.experiment):
            rows = configuration_rows(published, METRICS)
            if self.parameter in swept_parameters(rows):
                found.append(Overlay(published_name(published), published, rows))
        return found

    def charts(self) -> list[Chart]:
        """Elapsed and CPU time first, then the traffic."""
        single = len(self._groups()) < 2
        both = [("elapsed_s", "Elapsed"), ("cpu_mean_rank_s", "CPU per rank")]
        time = (
            [self._chart("time", "Elapsed and CPU time", both, "Time", fastest=True)]
            if single
            else [
                self._chart("elapsed", "Elapsed time", both[:1], "Time", fastest=False),
                self._chart("cpu", "CPU time per rank", both[1:], "CPU time", fastest=False),
            ]
        )
        return [
            *time,
            self._chart("packets", "Packets", [("packets", "Measured")], "Packets"),
            self._chart("throughput", "Throughput", [("throughput_Bps", "Measured")], "Throughput"),
            self._chart(
                "interarrival", "Mean inter-arrival time", [("interarrival_mean_s", "Measured")], "Inter-arrival"
            ),
        ]

    def _groups(self) -> dict[str, list[ConfigurationRow]]:
        """Rows by the values of all swept parameters but the one on the x axis: one series each."""
        groups: dict[str, list[ConfigurationRow]] = {}
        for row in self.rows:
            groups.setdefault(parameters_sentence(row.parameters, self.swept[1:]), []).append(row)
        return groups

    @property
    def left_out(self) -> int:
        """Series beyond the six that a chart can tell apart."""
        return max(0, len(self._groups()) - MOST_SERIES)

    def _chart(
        self, element: str, title: str, metrics: Sequence[tuple[str, str]], quantity: str, *, fastest: bool = False
    ) -> Chart:
        lines = [
            Line(group or self._name(name), self._x(rows), _values(rows, metric))
            for metric, name in metrics
            for group, rows in self._groups().items()
        ]
        published = [
            Published(o.name if i == 0 else f"{o.name}, {name}", *_medians(o.rows, metric, self.parameter), i == 0)
            for o in self.overlays
            for i, (metric, name) in enumerate(metrics)
        ]
        axis_unit = _AXIS_UNITS.get(self.parameter, "")
        parameter = parameter_label(self.parameter) + (f" ({axis_unit})" if axis_unit else "")
        figure = over_parameter(
            lines,
            published,
            quantity=quantity,
            unit=find(metrics[0][0]).unit,
            parameter=parameter,
            mark_fastest=fastest,
        )
        return Chart(element, title, figure, figure.get("published"))

    def _name(self, name: str) -> str:
        return published_name(self.experiment) if self.experiment.published and name == "Measured" else name

    def _x(self, rows: Sequence[ConfigurationRow]) -> list[Any]:
        return [row.parameters.get(self.parameter, row.hosts) for row in rows]

    def key_figures(self) -> list[tuple[str, str]]:
        """What was measured at the ends and at the best of the sweep, in words."""
        timed = [(row.median("elapsed_s"), row) for row in self.rows]
        measured = [(value, row) for value, row in timed if value is not None]
        if not measured:
            return []
        best_s, best = min(measured, key=lambda pair: pair[0])
        figures = [("Fastest measured", f"{self.point(best)}: {_with_range(best, 'elapsed_s')}")]
        first_s, first = measured[0]
        if len(measured) > 1 and best is not first:
            figures.append(("Against the first", f"{first_s / best_s:.2f}× faster than {self.point(first)}"))
        if len(measured) > 1:
            last = measured[-1][1]
            for metric in ("elapsed_s", "cpu_mean_rank_s", "packets", "throughput_Bps"):
                line = self._change(first, last, metric)
                if line:
                    figures.append((find(metric).label, line))
        counts = [len(row.values.get("elapsed_s", [])) for row in self.rows]
        n = str(min(counts)) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
        figures.append(("Trials each", n))
        return figures

    def _change(self, first: ConfigurationRow, last: ConfigurationRow, metric: str) -> str:
        a, b = first.median(metric), last.median(metric)
        if a is None or b is None:
            return ""
        unit = find(metric).unit
        return f"{_amount(a, unit)} at {self.point(first)}, {_amount(b, unit)} at {self.point(last)}"

    def point(self, row: ConfigurationRow) -> str:
        """A configuration in words: its swept values, or its hosts."""
        return parameters_sentence(row.parameters, self.swept or ["hosts"])

    def table(self) -> dict[str, Any]:
        """Headings and rows of the configurations table."""
        columns = [_Column.of(metric, self.rows) for metric in HEADLINE]
        names = [name for name in self.swept if name != "hosts"]
        timed = [(row.median("elapsed_s"), row.pk) for row in self.rows if row.median("elapsed_s") is not None]
        best = min(timed)[1] if len(timed) > 1 else None
        return {
            "names": [parameter_label(name) for name in names],
            "columns": columns,
            "rows": [
                {
                    "row": row,
                    "best": row.pk == best,
                    "point": self.point(row),
                    "values": [value_words(name, row.parameters.get(name)) for name in names],
                    "cells": [column.cell(row) for column in columns],
                    "squares": squares(row.trials),
                }
                for row in self.rows
            ],
        }

    def failures(self) -> list[tuple[str, TrialMark]]:
        """Every trial that did not finish or is flagged, with the point it stands for."""
        return [
            (self.point(row), mark)
            for row in self.rows
            for mark in row.trials
            if mark.state in ("failed", "errored", "lost") or mark.trust in _FLAGGED
        ]


@dataclass(frozen=True)
class _Column:
    """One metric of the table: a scale for the whole column."""

    metric: str
    label: str
    unit: str
    scale: Scale

    @classmethod
    def of(cls, metric: str, rows: Sequence[ConfigurationRow]) -> _Column:
        description = find(metric)
        medians = [value for row in rows if (value := row.median(metric)) is not None]
        scale = Scale.of(medians, description.unit)
        return cls(metric, description.label, scale.unit, scale)

    def cell(self, row: ConfigurationRow) -> tuple[str, str]:
        """(median, half the range with the same decimals; '' for a single trial)."""
        middle, ends = row.median(self.metric), row.range(self.metric)
        if middle is None or ends is None:
            return numbers.NOTHING, ""
        value = self.scale(middle)
        decimals = max(0, 3 - floor(log10(abs(value)))) if value else 0
        half = self.scale(ends[1] - ends[0]) / 2
        spread = numbers.grouped(half, decimals) if len(row.values[self.metric]) > 1 else ""
        return numbers.grouped(value, decimals), spread


def squares(trials: Sequence[TrialMark]) -> list[dict[str, str]]:
    """One square per trial for a strip: state (flagged when the capture is), and its name for people."""
    order = {"measured": 0, "warmup": 1, "control": 2}
    found = []
    for mark in sorted(trials, key=lambda m: (order.get(m.kind, 3), m.repetition)):
        state = "flagged" if mark.state == "finished" and mark.trust in _FLAGGED else mark.state
        name = trial_role(mark.kind, mark.repetition)
        found.append({"pk": str(mark.pk), "state": state, "name": name, "kind": mark.kind, "message": mark.message})
    return found


def published_name(experiment: Experiment) -> str:
    """'Published 2007'."""
    return f"Published {experiment.source.get('year', '')}".strip()


def _values(rows: Sequence[ConfigurationRow], metric: str) -> list[list[float]]:
    return [row.values.get(metric, []) for row in rows]


def _medians(rows: Sequence[ConfigurationRow], metric: str, parameter: str) -> tuple[list[Any], list[float]]:
    pairs = [(row.parameters.get(parameter), row.median(metric)) for row in rows]
    kept = [(x, y) for x, y in pairs if x is not None and y is not None]
    return [x for x, _ in kept], [y for _, y in kept]


def _amount(value: float, unit: str) -> str:
    number, prefixed = numbers.quantity(value, unit)
    return f"{number}{numbers.NARROW}{prefixed}" if prefixed else number


def _with_range(row: ConfigurationRow, metric: str) -> str:
    middle, ends = row.median(metric), row.range(metric)
    if middle is None or ends is None:
        return numbers.NOTHING
    unit = find(metric).unit
    if len(row.values[metric]) < 2:
        return _amount(middle, unit)
    return f"{_amount(middle, unit)} ({_amount(ends[0], unit)} to {_amount(ends[1], unit)})"


def metric_rows(values: Mapping[str, float]) -> list[dict[str, Any]]:
    """Values by id with label, unit and definition, in the catalogue's order, the workload's own first."""
    order = {identifier: number for number, identifier in enumerate(METRIC_CATALOGUE)}
    rows = []
    for identifier in sorted(values, key=lambda name: (order.get(name, -1), name)):
        row: dict[str, Any] = {
            "id": identifier,
            "value": values[identifier],
            "label": identifier,
            "unit": "",
            "definition": "",
        }
        try:
            metric = find(identifier)
        except KeyError:  # measured by an earlier version that had another name for it
            rows.append(row | {"section": "no longer in the catalogue"})
            continue
        section = metric.section if identifier in order else f"figures of merit of {metric.source}"
        rows.append(
            row | {"label": metric.label, "unit": metric.unit, "definition": metric.definition, "section": section}
        )
    return rows
