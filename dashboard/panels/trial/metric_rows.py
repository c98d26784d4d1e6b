"""The measurements of a trial as rows, by sections of the catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from analysis import numbers
from analysis.catalogue import METRICS
from experiments.metrics import find, is_metric

_SECTIONS = {
    "run": "Run",
    "energy": "Energy",
    "fabric": "Fabric",
    "processor": "Processor",
    "gpu": "GPU",
    "files": "Files",
    "mpi": "Inside MPI",
    "volume": "Volume and rate",
    "interarrival": "Inter-arrival",
    "tcp": "TCP",
    "matrices": "Matrices",
    "trust": "Trust of the capture",
    "legacy": "As in the report of 2011",
}


_APART: Final = 2
"""Absent metrics with one reason that are listed one by one."""


def missing_rows(not_available: Mapping[str, str]) -> list[dict[str, str]]:
    """Return absent metrics with reasons; those with the same reason share a row."""
    order = {identifier: number for number, identifier in enumerate(METRICS)}
    identifiers = sorted(filter(is_metric, not_available), key=lambda name: order.get(name, -1))
    by_reason: dict[str, list[str]] = {}
    for identifier in identifiers:
        by_reason.setdefault(not_available[identifier], []).append(identifier)
    rows = []
    for reason, identifiers in by_reason.items():
        labels = [find(identifier).label for identifier in identifiers]
        if len(labels) > _APART:
            first = f"{labels[0]} and {numbers.grouped(len(labels) - 1)} more"
            rows.append({"id": "", "label": first, "all": ", ".join(labels), "reason": reason})
        else:
            rows += [
                {"id": identifier, "label": label, "all": "", "reason": reason}
                for identifier, label in zip(identifiers, labels, strict=True)
            ]
    return rows


def metric_rows(values: Mapping[str, float], printed_by: str) -> list[dict[str, Any]]:
    """Return values by id with label and unit, the workload's metrics first.

    ``printed_by``: the workload, if the output is stored from which its figures were read; else ''.
    """
    order = {identifier: number for number, identifier in enumerate(METRICS)}
    rows = []
    for identifier in sorted(values, key=lambda name: (order.get(name, -1), name)):
        row: dict[str, Any] = {"id": identifier, "value": values[identifier], "label": identifier, "unit": ""}
        row["is_printed"] = bool(printed_by) and identifier.startswith(f"{printed_by}.")
        if not is_metric(identifier):  # measured by an earlier version under another name
            rows.append(row | {"section": "No longer in the catalogue"})
            continue
        metric = find(identifier)
        section = _SECTIONS[metric.section] if identifier in order else f"Figures of merit of {metric.source}"
        rows.append(row | {"label": metric.label, "unit": metric.unit, "section": section})
    return rows
