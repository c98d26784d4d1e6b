"""Charts and configuration table of an experiment's page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from analysis import numbers
from analysis.conclusions import Answer, Diagnosis
from analysis.conclusions.answering import SLOWED
from analysis.conclusions.wording import lower_first
from analysis.trust_level import FLAGGED
from dashboard.charts.panel import Chart, Section
from dashboard.charts.parts import MOST_SERIES, Line, descheduled_note
from dashboard.charts.sweep import over_parameter
from dashboard.labels import parameter_label, parameters_sentence, value_words
from dashboard.panels.experiment.axes import STEP, XAxis, groups_without, x_parameter
from dashboard.panels.experiment.scaling import IN_WINDOW, WINDOW, ScalingCharts, breakdown_metrics, fits_of
from dashboard.panels.experiment.tables import MOST_SQUARES, Column, Slice, trial_dots
from dashboard.states import BEST
from experiments import workloads
from experiments.common import external_figures
from experiments.common.quantities import DURATION
from experiments.metrics import HEADLINE, deciding_metric, find
from experiments.models import FAILED, UNFINISHED, Experiment, Kind, Measurement, State
from experiments.selectors import (
    ConfigurationRow,
    TrialMark,
    configuration_rows,
    related_publications,
    swept_parameters,
)
from experiments.selectors.diagnosis import renewal_step

TIME = ("elapsed_s", "cpu_mean_rank_s")
TRAFFIC = ("packets", "throughput_Bps", "interarrival_mean_s")
_ENERGY = "energy_j"
_BESIDE_ANSWER = ("speedup", "where-time-goes")
MOST_BESIDE_ANSWER = 3
_MOST_SLOWED = 2
"""Most slowed configurations with names in a subtitle."""
# Experiments show the first figures of merit of the workload, the trial pages all of them.
OWN_FIGURES = 3


@dataclass(frozen=True)
class Overlay:
    """Published results of the same workload over the same parameter."""

    name: str
    experiment: Experiment
    rows: Sequence[ConfigurationRow]


class Results:
    """An experiment's configurations, and published results of its workload.

    Four queries, and three for each study. `diagnosis` adds models to the charts, `answer` a mark at the size
    that is enough (experiments.selectors.diagnosis).
    """

    def __init__(
        self, experiment: Experiment, diagnosis: Diagnosis | None = None, answer: Answer | None = None
    ) -> None:
        self.experiment = experiment
        self.diagnosis = diagnosis
        strength = "printed" if experiment.published else "open" if answer is None else answer.strength
        self.enough = None if answer is None else _enough_hosts(answer)
        self._groups = (
            [] if answer is None else [figure.where for figure in answer.figures if figure.name == "best size"]
        )
        self._slowed = [] if answer is None else [figure.where for figure in answer.figures if figure.name == SLOWED]
        self.is_without_drift = answer is not None and answer.is_without_drift
        self.figures = figures_of_merit(experiment)
        self.parts = breakdown_metrics(experiment)
        decides = deciding_metric(experiment.workload, experiment.specification)
        metrics = (*HEADLINE, *TIME, *TRAFFIC, WINDOW, *IN_WINDOW, decides, _ENERGY, *self.figures, *self.parts)
        self.metrics = tuple(dict.fromkeys(metrics))
        self.rows = configuration_rows(experiment, self.metrics)
        self.best_word = BEST.get(strength, "best so far" if self.unfinished else "best median")
        if self.is_without_drift:  # rows and charts have the medians with the drift
            self.best_word = "best as measured"
        self.swept = swept_parameters(self.rows)
        self.parameter = x_parameter(self.rows, self.swept, in_steps=not experiment.published)
        self.overlays = [] if experiment.published else self._overlays()

    def _overlays(self) -> list[Overlay]:
        overlays = []
        for published in related_publications(self.experiment):
            rows = configuration_rows(published, self.metrics)
            if self.parameter in swept_parameters(rows) and self.parameter != STEP:
                overlays.append(Overlay(published_name(published), published, rows))
        return overlays

    @property
    def slowed(self) -> str:
        """Return where other load slowed every counted trial in words, or ""."""
        names = [
            parameters_sentence(where, self.swept or ["hosts"], self.experiment.workload) for where in self._slowed
        ]
        if not names:
            return ""
        measured = sum(any(row.values.values()) for row in self.rows)
        places = "; ".join(names) if len(names) <= _MOST_SLOWED else f"{len(names)} of {measured} configurations"
        return f"other load slowed every counted trial{f' at {places}' if len(names) < measured else ''}"

    def has(self, metric: str) -> bool:
        """Return True if any trial measured the metric."""
        return any(row.values.get(metric) for row in self.rows)

    @property
    def complete(self) -> str:
        """Return the number of configurations without waiting or running trials.

        "first" if none is complete, but a counted trial has ended; with the trials that every configuration has, if
        some are waiting, and the number of renewals of the answer: "1-2.3".
        """
        complete = sum(bool(row.trials) and all(m.state not in UNFINISHED for m in row.trials) for row in self.rows)
        finished = [sum(m.state == State.FINISHED and m.kind == Kind.MEASURED for m in row.trials) for row in self.rows]
        fewest = f"-{min(finished)}" if self.unfinished and min(finished) else ""
        renewals = sum(finished) // self.renewal_step if self.unfinished else 0
        rounds = f"{fewest}.{renewals}" if renewals else fewest
        return f"{complete}{rounds}" if complete or rounds or not any(row.values for row in self.rows) else "first"

    @property
    def renewal_step(self) -> int:
        """Return after how many trials the answer of a running experiment is renewed."""
        states = [mark.state for row in self.rows for mark in row.trials if mark.kind == Kind.MEASURED]
        return renewal_step(sum(state == State.FINISHED or state in UNFINISHED for state in states))

    @property
    def unfinished(self) -> int:
        """Return the number of trials that wait or run."""
        return sum(mark.state in UNFINISHED for row in self.rows for mark in row.trials)

    @property
    def scales(self) -> bool:
        """Return True if the sizes of the design differ."""
        return len({row.hosts for row in self.rows}) > 1 or "ranks_per_host" in self.swept

    @property
    def _fills(self) -> bool:
        return not (self.experiment.published or self.experiment.is_imported)

    @property
    def answered_by(self) -> str:
        """Return the section of the deciding metric."""
        return "figures" if not self.scales and self.deciding in self.figures else "scaling"

    def sections(self) -> list[Section]:
        """Return charts by heading: time, traffic, figures of the workload.

        Published and imported experiments show what they have, others every chart from the start.
        """
        is_measured_here = not self.experiment.published
        sections = []
        charts = [*self._deciding_chart(), *self._time_charts(), *self._scaling_charts()]
        if charts:
            sections.append(Section("scaling", "Scaling" if self.scales else "Time", charts))
        if self._fills or any(map(self.has, TRAFFIC)):
            titles = ("Packets", "Throughput", "Mean inter-arrival time")
            traffic = [self._chart(metric, title, metric) for metric, title in zip(TRAFFIC, titles, strict=True)]
            sections.append(Section("traffic", "Traffic", traffic))
        figures = [metric for metric in self.figures if is_measured_here or len(self._measured(metric)) > 1]
        if figures:
            charts = [self._chart(f"figure-{i}", find(metric).label, metric) for i, metric in enumerate(figures)]
            sections.append(Section("figures", "Figures of merit", charts))
        return sections

    def panels(self) -> list[Section]:
        """Return the sections with one chart per metric.

        Reports and REST also know the second name of the deciding one.
        """
        sections = self.sections()
        charts = [chart for section in sections for chart in section.charts]
        decides = {chart.metric for chart in charts if chart.element == "deciding" and chart.metric}
        rest = [(s, [c for c in s.charts if c.element == "deciding" or c.metric not in decides]) for s in sections]
        return [replace(section, charts=charts) for section, charts in rest if charts]

    def split(self, sections: Sequence[Section]) -> tuple[Section | None, list[Section]]:
        """Return the three charts beside the answer, and all others."""
        answering = next((section for section in sections if section.element == self.answered_by), None)
        if answering is None:
            return None, list(sections)
        leading, *others = answering.charts
        first = [leading, *sorted(others, key=lambda chart: chart.element not in _BESIDE_ANSWER)][:MOST_BESIDE_ANSWER]
        rest = [(section, [chart for chart in section.charts if chart not in first]) for section in sections]
        return replace(answering, charts=first), [replace(section, charts=charts) for section, charts in rest if charts]

    def _deciding_chart(self) -> list[Chart]:
        metric = deciding_metric(self.experiment.workload, self.experiment.specification)
        if self.experiment.is_imported and not self.has(metric):
            metric = self.deciding or metric  # its program may be unknown here
        if not self.scales or metric in TIME or not (self._fills or self.has(metric)):
            return []
        return [self._chart("deciding", find(metric).label, metric, fastest=find(metric).direction == "lower")]

    def _time_charts(self) -> list[Chart]:
        if not (self._fills or any(map(self.has, TIME))):
            return []
        if len(groups_without(self.rows, self.swept, self.parameter, self.experiment.workload)) < 2:
            names = {"elapsed_s": "Elapsed", "cpu_mean_rank_s": "CPU per rank"}
            decides = self.deciding in (None, TIME[0])  # a mark of another metric would contradict the answer
            return [self._chart("time", "Elapsed and CPU time", *TIME, names=names, quantity="Time", fastest=decides)]
        return [self._chart("elapsed", "Elapsed time", TIME[0]), self._chart("cpu", "CPU time per rank", TIME[1])]

    def _scaling_charts(self) -> list[Chart]:
        rows, swept, x = self._axis(TIME[0])
        if x != "hosts" or "hosts" not in swept or not (self._fills or any(map(self.has, TIME))):
            return []
        weak = workloads.scaling_of(self.experiment.workload, self.experiment.specification) == "weak"
        # Published tables have one problem at every size, which is not comparable with weak scaling.
        published = {} if weak else {overlay.name: overlay.rows for overlay in self.overlays}
        charts = ScalingCharts(
            rows,
            swept,
            name=self._name("Measured"),
            weak=weak,
            rate=self._rate,
            time=self._time,
            diagnosis=self.diagnosis,
            published=published,
        )
        of = "elapsed" if charts.metric == TIME[0] else lower_first(find(charts.metric).label)
        against = ", ".join(
            filter(None, (of, self._base(charts.metric), f"against {numbers.plural(charts.reference, 'host')}"))
        )
        against += "; the work grows with the hosts" if weak else ""
        against += f"; {self.slowed}" if self.slowed else ""
        left_out = charts.left_out
        views, speed_up, efficiency = charts.time_views(self.parts), charts.speed_up(), charts.efficiency()
        medians = "; ".join(filter(None, (f"medians, shares of {charts.base}", descheduled_note(views[0][1]))))
        overlaid = (speed_up.get("published"), efficiency.get("published"))
        named = [(metric, find(metric).label) for metric in self.parts]
        return [
            Chart("speedup", charts.quantity, speed_up, overlaid[0], left_out, against, logarithm=False),
            Chart("where-time-goes", "Time breakdown", views[0][1], None, 0, medians, views, named, logarithm=False),
            Chart("efficiency", "Scaling efficiency", efficiency, overlaid[1], left_out, against, logarithm=False),
        ]

    def _measured(self, metric: str) -> list[ConfigurationRow]:
        return [row for row in self.rows if row.values.get(metric)]

    def _axis(self, metric: str) -> tuple[list[ConfigurationRow], list[str], str]:
        """Return (rows, swept parameters, x parameter) of a chart."""
        if not self.experiment.published:
            return self.rows, self.swept, self.parameter
        rows = self._measured(metric)
        swept = swept_parameters(rows)
        return rows, swept, x_parameter(rows, swept)

    def _chart(
        self,
        element: str,
        title: str,
        *metrics: str,
        names: Mapping[str, str] | None = None,
        quantity: str = "",
        fastest: bool = False,
    ) -> Chart:
        names = names or {}
        rows, swept, x = self._axis(metrics[0])
        groups = groups_without(rows, swept, x, self.experiment.workload)
        axis_rows = [*rows, *(row for overlay in self.overlays for row in overlay.rows)]
        axis = XAxis.of(x, axis_rows, self.experiment.workload)
        lines = [
            line_of(group or self._name(names.get(metric, "Measured")), axis.values(rows), rows, metric)
            for metric in metrics
            for group, rows in groups.items()
        ]
        published = [
            axis.published(o.name if i == 0 else f"{o.name}, {names[metric]}", o.rows, metric, legend=i == 0)
            for o in self.overlays
            for i, metric in enumerate(metrics)
        ]
        # Points above each other are other settings at one value of the axis: no curve over it.
        published = [line for line in published if len(line.x) == 1 or len(set(line.x)) > 1]
        description = find(metrics[0])
        quantity = quantity or description.label
        figure = over_parameter(
            lines,
            published,
            quantity=quantity,
            unit=description.unit,
            parameter=axis.title,
            # Sizes of several groups differ.
            fastest=self.best_word.replace("best", "fastest") if fastest and len(groups) == 1 else "",
            enough=self.enough if x == "hosts" and len(groups) == 1 and metrics[0] == self.deciding else None,
            models=fits_of(self.diagnosis, metrics[0]) if metrics[0] in TRAFFIC and x == "hosts" else (),
            flagged=[(at, v) for row in rows for at in axis.values([row]) for v in row.flagged.get(metrics[0], ())],
        )
        figure_of = metrics[0] if "." in metrics[0] else ""
        left_out = max(0, len(groups) - MOST_SERIES)
        base = self._base(metrics[0])
        if metrics[0] in (TIME[0], self.deciding):
            base = "; ".join(filter(None, (base, self.slowed)))
        return Chart(element, title, figure, figure.get("published"), left_out, base, metric=figure_of)

    def _base(self, metric: str) -> str:
        """Return the base of a chart whose values the answer states without drift, or ""."""
        return "as measured, with drift" if self.is_without_drift and metric == self.deciding else ""

    def _name(self, name: str) -> str:
        return published_name(self.experiment) if self.experiment.published and name == "Measured" else name

    @property
    def deciding(self) -> str | None:
        """Return the deciding metric: the workload's, elapsed time, or the first directed."""
        candidates = [
            deciding_metric(self.experiment.workload, self.experiment.specification),
            "elapsed_s",
            *(m for m in self.figures if find(m).direction != "neutral"),
        ]
        return next(filter(self.has, candidates), None)

    @property
    def _rate(self) -> str:
        """Return the deciding metric if it is a rate: the speed-up is of it then."""
        metric = self.deciding
        return metric if metric and find(metric).direction == "higher" and "/" in find(metric).unit else ""

    @property
    def _time(self) -> str:
        """Return the deciding metric if it is a time, else the elapsed time."""
        metric = self.deciding or deciding_metric(self.experiment.workload, self.experiment.specification)
        is_time = metric and find(metric).direction == "lower" and find(metric).unit in DURATION.units
        return metric if metric and is_time else TIME[0]

    def _best(self) -> list[ConfigurationRow]:
        """Return the best row, or that of each group that the answer compares."""
        metric = self.deciding
        if metric is None:
            return []
        pick = max if find(metric).direction == "higher" else min
        measured = self._measured(metric)
        groups = [
            [(row.median(metric), i) for i, row in enumerate(measured) if where.items() <= row.parameters.items()]
            for where in self._groups or [{}]
        ]
        return [measured[pick(group)[1]] for group in groups if len(group) > 1]

    def point(self, row: ConfigurationRow) -> str:
        """Return a configuration in words: its swept values, or its hosts."""
        return parameters_sentence(row.parameters, self.swept or ["hosts"], self.experiment.workload)

    def table(self, first: str = "") -> dict[str, Any]:
        """Return headings and rows of one page of the configurations table."""
        of_energy = filter(self.has, (_ENERGY,))
        metrics = dict.fromkeys((*filter(None, (self.deciding,)), *HEADLINE, *of_energy, *self.figures))
        columns = [Column.of(metric, self.rows) for metric in metrics if self.unfinished or self.has(metric)]
        names = (
            self.swept if "hosts" in self.swept or not any(row.hosts for row in self.rows) else ["hosts", *self.swept]
        )
        best, workload = self._best(), self.experiment.workload
        page = Slice.of(first, len(self.rows))
        rows = self.rows[page.first - 1 : page.last]
        most = MOST_SQUARES if sum(len(row.trials) for row in rows) <= MOST_SQUARES else MOST_SQUARES // len(rows)
        return {
            "page": page,
            "best_word": self.best_word,
            "best": (self.point(best[0]), self.rows.index(best[0]) + 1) if len(best) == 1 else None,
            "names": [parameter_label(name, workload) for name in names],
            "ranks": any(row.ranks for row in self.rows),
            "columns": columns,
            "rows": [
                {
                    "row": row,
                    "best": row in best,
                    "enough": self.swept == ["hosts"] and row.hosts == self.enough,
                    "point": self.point(row),
                    "values": [value_words(name, row.parameters.get(name), workload) for name in names],
                    "cells": [column.cell(row) for column in columns],
                    "strip": trial_dots(row.trials, most),
                }
                for row in rows
            ],
        }

    def failures(self) -> list[tuple[str, TrialMark]]:
        """Return every unfinished or flagged trial with its point."""
        return self._marks(lambda mark: mark.state in FAILED or mark.trust in FLAGGED)

    def handed_back(self) -> list[tuple[str, TrialMark]]:
        """Return every requeued trial with its point; its message has the reason."""
        return self._marks(lambda mark: mark.state == State.QUEUED and bool(mark.message))

    def _marks(self, matches: Callable[[TrialMark], bool]) -> list[tuple[str, TrialMark]]:
        return [(self.point(row), mark) for row in self.rows for mark in row.trials if matches(mark)]


def _enough_hosts(answer: Answer) -> float | None:
    """Return the number of hosts that an answer about one sweep calls enough."""
    hosts = [figure for figure in answer.figures if figure.name == "enough" and figure.unit == "hosts"]
    value = hosts[0].value if len(hosts) == 1 and not hosts[0].where else None
    return float(value) if isinstance(value, int | float) else None


def figures_of_merit(experiment: Experiment) -> list[str]:
    """Return further metrics: those of a study, or the first of the workload."""
    if experiment.published:
        tables = experiment.specification.get("tables", [])
        printed = dict.fromkeys(metric for table in tables for metric in table.get("printed_as", {}))
        return [metric for metric in printed if metric not in (*HEADLINE, *TIME, *TRAFFIC)]
    workload = workloads.find(experiment.workload)
    if workload is not None:
        return [figure.id for figure in workload.figures[:OWN_FIGURES]]
    if not experiment.is_imported:
        return []
    measured = Measurement.objects.filter(trial__experiment=experiment, scope=Measurement.Scope.ALL)
    names = measured.order_by("metric").values_list("metric", flat=True).distinct()
    return [name for name in names if external_figures.described(name) is not None][:OWN_FIGURES]


def published_name(experiment: Experiment) -> str:
    """Return 'Published 2007'."""
    return f"Published {experiment.source.get('year', '')}".strip()


def line_of(name: str, x: Sequence[Any], rows: Sequence[ConfigurationRow], metric: str) -> Line:
    """Return a metric as a line whose points link to their trials."""
    values = [row.values.get(metric, []) for row in rows]
    ids = [row.trial_ids.get(metric, []) for row in rows]
    return Line(name, x, values, of=[row.pk for row in rows], ids=ids)
