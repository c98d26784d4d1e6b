"""Rows of tables and strips: configurations with one scale per column, squares of trials, metrics by catalogue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor, log10
from typing import Any

from analysis.catalogue import METRICS
from dashboard import numbers
from dashboard.charts import Scale
from dashboard.labels import trial_role
from experiments.metrics import find
from experiments.selectors import ConfigurationRow, TrialMark
from experiments.traffic import FLAGGED

_SECTIONS = {
    "run": "Run",
    "volume": "Volume and rate",
    "interarrival": "Inter-arrival",
    "tcp": "TCP",
    "matrices": "Matrices",
    "trust": "Trust of the capture",
    "legacy": "As in the report of 2011",
}


@dataclass(frozen=True)
class Column:
    """One metric of the table: a scale for the whole column."""

    metric: str
    label: str
    unit: str
    scale: Scale

    @classmethod
    def of(cls, metric: str, rows: Sequence[ConfigurationRow]) -> Column:
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
        state = "flagged" if mark.state == "finished" and mark.trust in FLAGGED else mark.state
        name = trial_role(mark.kind, mark.repetition)
        found.append({"pk": str(mark.pk), "state": state, "name": name, "kind": mark.kind, "message": mark.message})
    return found


def metric_rows(values: Mapping[str, float]) -> list[dict[str, Any]]:
    """Values by id with label, unit and definition, in the catalogue's order, the workload's own first."""
    order = {identifier: number for number, identifier in enumerate(METRICS)}
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
            rows.append(row | {"section": "No longer in the catalogue"})
            continue
        section = _SECTIONS[metric.section] if identifier in order else f"Figures of merit of {metric.source}"
        rows.append(
            row | {"label": metric.label, "unit": metric.unit, "definition": metric.definition, "section": section}
        )
    return rows
