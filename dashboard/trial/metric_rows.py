"""The measurements of a trial as rows, by the sections of the catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analysis.catalogue import METRICS
from experiments.metrics import find

_SECTIONS = {
    "run": "Run",
    "mpi": "Inside MPI",
    "volume": "Volume and rate",
    "interarrival": "Inter-arrival",
    "tcp": "TCP",
    "matrices": "Matrices",
    "trust": "Trust of the capture",
    "legacy": "As in the report of 2011",
}


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
