"""Transfer times by message size, with latency and bandwidth."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from analysis import numbers
from dashboard.charts.curves import bandwidth_curves, time_curves
from dashboard.charts.parts import MOST_SERIES, Line
from dashboard.labels import parameters_sentence
from dashboard.panels.parts.measured import Measured, ResultSource
from experiments.models import Trial
from experiments.selectors import ConfigurationRow, swept_parameters
from experiments.workloads import WorkloadDefinition

FEWEST_SIZES: Final = 3
MOST_TRIALS: Final = 20
"""Most curves of one configuration: a table may have hundreds of rows."""


def curves_part(measured: Measured, targets: Mapping[str, str]) -> dict[str, Any] | None:
    """Return both charts and a table per source; None without several sizes."""
    workload = measured.workload
    if workload is None or measured.main.experiment.published:
        return None
    rows = measured.main.with_metric(f"{workload.slug}.latency_s")
    lines = _lines(workload, rows[:MOST_SERIES], swept_parameters(measured.main.rows))
    if not lines:
        return None
    sources = [s for s in measured.sources if s.with_metric(f"{workload.slug}.latency_s")]
    return {
        "time": time_curves(lines),
        "bandwidth": bandwidth_curves(lines),
        "left_out": len(rows) - len(lines),
        "tables": [_table(source, workload.slug) for source in sources],
    }


def _lines(workload: WorkloadDefinition, rows: Sequence[ConfigurationRow], names: Sequence[str]) -> list[Line]:
    """Return the curve of every configuration, without sizes of 0 bytes (log axis)."""
    ids = {row.pk: row.trial_ids[f"{workload.slug}.latency_s"][:MOST_TRIALS] for row in rows}
    every = [pk for keys in ids.values() for pk in keys]
    tables = dict(Trial.objects.filter(pk__in=every).values_list("pk", "tables"))
    lines = []
    for row in rows:
        times: dict[int, list[float]] = defaultdict(list)
        trials: dict[int, list[int]] = defaultdict(list)
        for pk in ids[row.pk]:
            for size, time_s in workload.curve(tables[pk]):
                if size > 0 and time_s > 0:
                    times[size].append(time_s)
                    trials[size].append(pk)
        if len(times) >= FEWEST_SIZES:
            name = parameters_sentence(row.parameters, names) or "Measured"
            sizes = sorted(times)
            values, of = [times[size] for size in sizes], [row.pk] * len(sizes)
            lines.append(Line(name, sizes, values, of=of, ids=[trials[size] for size in sizes]))
    return lines


def _table(source: ResultSource, slug: str) -> dict[str, Any]:
    rows = source.with_metric(f"{slug}.latency_s")
    names = swept_parameters(rows)
    return {
        "name": source.name,
        "rows": [
            {
                "point": parameters_sentence(row.parameters, names or ["hosts"]),
                "latency": _cell(row.median(f"{slug}.latency_s"), 1e6),
                "fitted": _interval(row, f"{slug}.fit_latency"),
                "bandwidth": _cell(row.median(f"{slug}.bandwidth_max_Bps"), 1e-6),
                "half": _cell(row.median(f"{slug}.half_bandwidth_bytes"), 1e-3),
            }
            for row in rows
        ],
    }


def _cell(value: float | None, factor: float) -> str:
    return numbers.NOTHING if value is None else numbers.significant(value * factor)


def _interval(row: ConfigurationRow, name: str) -> str:
    value, low, high = (row.median(f"{name}{end}_s") for end in ("", "_low", "_high"))
    if value is None or low is None or high is None:
        return _cell(value, 1e6)
    return f"{_cell(value, 1e6)} ({numbers.between(low * 1e6, high * 1e6)})"
