"""Initial and later phases over the nodes: equations, gains, extrapolation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from analysis import numbers
from analysis.conclusions.observations.economics import contention
from analysis.conclusions.observations.extrapolation import Extrapolation, extrapolate, fit_phase, times_faster
from analysis.scaling import Estimate, Fit, Point, Study
from dashboard.charts.fits import Fitted
from dashboard.charts.studies import phases_chart
from dashboard.panels.experiment.results import line_of
from dashboard.panels.parts.measured import Measured, ResultSource, cluster_facts, stated_facts
from experiments.metrics import find
from experiments.models import Trial
from experiments.selectors import ConfigurationRow
from experiments.workloads import Phases

NODES, STEPS = 100, 1000
"""Default targets of the extrapolation."""
MOST = 10_000_000
AXIS = "nodes"
_FILES = (
    *("io_requested_read_bytes", "io_read_bytes", "io_written_bytes", "io_wait_s"),
    *("nfs_read_bytes", "nfs_written_bytes", "nfs_wait_s"),
)


def phases_part(measured: Measured, targets: Mapping[str, str]) -> dict[str, Any] | None:
    """Return gains, equations and extrapolation by method; None without phases."""
    phases = measured.workload.phases if measured.workload else None
    if phases is None:
        return None
    by_method = _by_method(measured, phases)
    printed = [table for source in measured.sources if (table := _printed(source, phases))]
    if not by_method and not (printed and measured.main.experiment.published):
        return None
    return {
        "first_label": find(phases.first).label,
        "later_label": find(phases.later).label,
        "method": phases.method,
        "baseline": phases.baseline,
        "steps_name": phases.steps,
        "printed": printed,
        "measured": _measured(measured, phases, by_method, targets) if by_method else None,
    }


def _measured(
    measured: Measured, phases: Phases, by_method: Mapping[str, list[ConfigurationRow]], targets: Mapping[str, str]
) -> dict[str, Any]:
    rows = [row for method_rows in by_method.values() for row in method_rows]
    first = {method: _fit(method_rows, phases, phases.first) for method, method_rows in by_method.items()}
    # Later steps have their data already: all methods measure the same.
    later = _fit(rows, phases, phases.later)
    nodes, steps = _target(targets.get("nodes"), NODES), _target(targets.get("steps"), STEPS)
    measured_steps = min(int(row.parameters.get(phases.steps, 1)) for row in rows)
    totals = _totals(first, later, phases, nodes, steps, measured_steps)
    gains = _gains(by_method, phases, measured)
    return {
        "gains": gains,
        "files": _files(by_method, phases),
        "priced": any(row.get("price") for row in gains),
        "currency": stated_facts(measured.main.experiment).get("currency", ""),
        "equations": [
            *((find(phases.first).label, method, _equation(fit)) for method, fit in first.items()),
            (find(phases.later).label, "all", _equation(later)),
        ],
        "target": {"nodes": nodes, "steps": steps},
        "totals": totals,
        "beyond": list(dict.fromkeys(word for row in totals for word in row["beyond"])),
        "chart": _chart(by_method, first, phases, nodes),
    }


def _by_method(measured: Measured, phases: Phases) -> dict[str, list[ConfigurationRow]]:
    by_method: dict[str, list[ConfigurationRow]] = defaultdict(list)
    for row in measured.main.with_metric(phases.first):
        if row.values.get(phases.nodes):
            by_method[str(row.parameters.get(phases.method))].append(row)
    return by_method


def _target(text: str | None, default: int) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 10 and 1 <= int(text) <= MOST else default


def _fit(rows: Sequence[ConfigurationRow], phases: Phases, metric: str) -> Fit | None:
    points = [Point({AXIS: row.median(phases.nodes)}, row.values) for row in rows]
    return fit_phase(Study(points, axis=AXIS, time_metric=phases.run), metric)


def _gains(by_method: Mapping[str, list[ConfigurationRow]], phases: Phases, measured: Measured) -> list[dict[str, Any]]:
    facts = cluster_facts(measured.main.experiment)
    baseline = {row.median(phases.nodes): row for row in by_method.get(phases.baseline, [])}
    rows = []
    for method, method_rows in by_method.items():
        for row in method_rows:
            nodes, run = row.median(phases.nodes), row.median(phases.run)
            against = baseline.get(nodes)
            used = row.median(phases.utilisation)
            cells: dict[str, Any] = {
                "method": method,
                "nodes": nodes,
                "bandwidth": _mega(row.median(phases.aggregate)),
                "used": None if used is None else _percent(used),
            }
            slow = None if against is None else against.median(phases.run)
            if against is not None and method != phases.baseline and slow and run and nodes:
                lost = contention(slow, run, nodes, facts)
                cells |= {
                    "more_bandwidth": _more(row.median(phases.aggregate), against.median(phases.aggregate)),
                    "faster": numbers.significant(slow / run, 3),
                    "lost": _percent(lost.utilisation_lost),
                    "price": None if lost.price_lost is None else numbers.significant(lost.price_lost / slow * 3600, 3),
                }
            rows.append(cells)
    return sorted(rows, key=lambda cells: (cells["nodes"], list(by_method).index(cells["method"])))


def _files(by_method: Mapping[str, list[ConfigurationRow]], phases: Phases) -> dict[str, Any] | None:
    """Return bytes and waiting time of a mean rank, and of NFS; None without any."""
    order = list(by_method)
    everything = [(row, method) for method, rows in by_method.items() for row in rows]
    everything.sort(key=lambda pair: (pair[0].median(phases.nodes) or 0.0, order.index(pair[1])))
    columns = [metric for metric in _FILES if any(row.values.get(metric) for row, _ in everything)]
    rows = [
        {
            "nodes": row.median(phases.nodes),
            "method": method,
            "cells": [_per_rank(metric, row.median(metric), row.ranks) for metric in columns],
        }
        for row, method in everything
    ]
    return {"columns": [(find(metric).label, metric) for metric in columns], "rows": rows} if columns else None


def _per_rank(metric: str, value: float | None, ranks: int) -> str:
    shared = metric.startswith("nfs") or not ranks
    return numbers.amount(value if value is None or shared else value / ranks, find(metric).unit)


def _printed(source: ResultSource, phases: Phases) -> dict[str, Any] | None:
    rows = [row for row in source.rows if phases.printed_faster in row.values] if source.experiment.published else []
    if not rows:
        return None
    keys = [mark.pk for row in rows for mark in row.trials]
    conditions = dict(Trial.objects.filter(pk__in=keys).values_list("pk", "conditions"))
    gains = []
    for row in rows:
        faster, more = row.median(phases.printed_faster), row.median(phases.printed_more_percent)
        stated = [words for mark in row.trials for table in conditions[mark.pk].values() for words in table.items()]
        gains.append(
            {
                "nodes": row.hosts,
                "method": row.parameters.get(phases.method, ""),
                "faster": numbers.NOTHING if faster is None else numbers.significant(faster),
                "more_bandwidth": numbers.NOTHING if more is None else numbers.percent_change(1 + more / 100),
                "lost": numbers.NOTHING if not faster else _percent(contention(faster, 1.0, 1.0).utilisation_lost),
                "conditions": stated,
            }
        )
    return {"name": source.name, "rows": gains}


def _percent(share: float) -> str:
    return numbers.quantity(share, numbers.SHARE)[0]  # the heading has the unit


def _more(value: float | None, over: float | None) -> str:
    return numbers.NOTHING if not value or not over else numbers.percent_apart(value, over) or numbers.NOTHING


def _mega(value: float | None) -> str:
    return numbers.NOTHING if value is None else numbers.significant(value / 1e6)


def _equation(fit: Fit | None) -> dict[str, Any] | None:
    if fit is None:
        return None
    return {
        "title": fit.title,
        "formula": fit.formula,
        "parameters": [(name, _interval(estimate)) for name, estimate in fit.parameters.items()],
        "error": numbers.quantity(fit.cv_error, numbers.SHARE)[0],
        "measured": numbers.between(*fit.measured, digits=4),
    }


def _totals(
    first: Mapping[str, Fit | None], later: Fit | None, phases: Phases, nodes: int, steps: int, measured_steps: int
) -> list[dict[str, Any]]:
    totals: dict[str, Extrapolation] = {
        method: extrapolate(fit, later, nodes=nodes, searches=steps, measured_searches=measured_steps, stream=stream)
        for stream, (method, fit) in enumerate(first.items())
        if fit is not None and later is not None
    }
    slow = totals.get(phases.baseline)
    return [
        {
            "method": method,
            "first": _interval(total.first_s),
            "later": _interval(total.later_s),
            "total": _interval(total.total_s),
            "faster": None if slow is None or total is slow else _interval(times_faster(slow, total), "", 3),
            "beyond": [
                word
                for word, is_beyond in ((AXIS, total.beyond_nodes), (phases.steps, total.beyond_searches))
                if is_beyond
            ],
        }
        for method, total in totals.items()
    ]


def _interval(estimate: Estimate, unit: str = "s", digits: int | None = None) -> str:
    return numbers.with_interval(estimate.value, estimate.interval, unit, digits)


def _chart(
    by_method: Mapping[str, list[ConfigurationRow]], first: Mapping[str, Fit | None], phases: Phases, nodes: int
) -> dict[str, Any]:
    lines = [
        line_of(method, [row.median(phases.nodes) or 0.0 for row in rows], rows, phases.first)
        for method, rows in by_method.items()
    ]
    curves = {method: _curve(method, fit, nodes) for method, fit in first.items() if fit is not None}
    return phases_chart(lines, curves, quantity=find(phases.first).label, axis=AXIS.capitalize())


def _curve(method: str, fit: Fit, nodes: int) -> Fitted:
    low, high = fit.measured
    last = max(high, min(float(nodes), 4 * high))
    xs = sorted({low + (last - low) * i / 40 for i in range(41)} | {high})
    predicted = fit.predict(xs)
    low_ends = [None if p.interval is None else p.interval.low for p in predicted]
    high_ends = [None if p.interval is None else p.interval.high for p in predicted]
    return Fitted(f"{method}, {fit.title}", xs, [p.value for p in predicted], low_ends, high_ends, fit.measured)
