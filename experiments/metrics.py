"""Metrics of trials: the catalogue's and the workloads' figures of merit."""

from __future__ import annotations

import csv
from collections.abc import Container, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from analysis.catalogue import HEADLINE as HEADLINE
from analysis.catalogue import METRICS, Metric
from analysis.numbers import SHARE
from experiments import workloads
from experiments.common import external_figures
from experiments.common.stored_mappings import mapping_at
from experiments.workloads import FigureOfMerit, WorkloadDefinition

FROM_TWINS: Final = ("mpi_serialisation_efficiency", "mpi_transfer_efficiency")
"""Metrics that the database adds when an ideal-network run ends (``experiments_split_by_twins``)."""
ENERGY: Final = ("energy_j", "energy_delay_js", "energy_per_result_j")
"""Metrics of energy that forms offer to decide."""
_SHOWN_CHOICES: Final = 8
_CATALOGUE_LABELS: Final = {metric.label.casefold() for metric in METRICS.values()}
LARGEST: Final = 1e100
"""Of values that PostgreSQL adds up and squares; no program measures a larger one."""
_NEVER_NEGATIVE: Final = {"s", "B", "B/s", "bit/s", "Hz", "packets/s", "GFLOP/s"}
_DIFFERENCES: Final = {"observer_effect", "start_end_s", "start_end_share"}
"""Metrics of the catalogue that may be negative."""
_ABOVE_ONE: Final = {"observer_effect", "cpu_imbalance", "cpu_utilisation", "mpi_transfer_efficiency"}
"""Shares of the catalogue that may be larger than 1."""


def _printed() -> dict[str, Metric]:
    rows: Iterable[Any] = csv.DictReader((Path(__file__).parent / "library/published_metrics.csv").open(newline=""))
    return {row["id"]: Metric(**row, section="run") for row in rows}


_STUDIES: Final = _printed()
"""Metrics of published studies alone; a workload's figure of the same name takes precedence."""


def find(identifier: str, specification: Mapping[str, Any] | None = None) -> Metric:
    """Return the description of a metric or figure of merit. Raise KeyError.

    ``specification`` defines the figures of the workload ``command``; without it such a figure has no unit and no better direction.
    """
    if identifier in METRICS:
        return METRICS[identifier]
    slug, _, name = identifier.partition(".")
    workload = workloads.find(slug, (specification or {}).get("parameters"))
    figure = next((f for f in workload.figures if f.id == identifier), None) if workload else None
    if workload is not None and figure is None and workload.constants and name.isidentifier():
        figure = FigureOfMerit(identifier, name.replace("_", " ").capitalize(), "", "neutral", "")
    if workload is None and (external := external_figures.described(identifier)) is not None:
        return _external(identifier, external)
    if workload is None or figure is None:
        return _STUDIES[identifier]
    return _described(figure, workload)


def _described(figure: FigureOfMerit, workload: WorkloadDefinition) -> Metric:
    """Return a figure of a workload."""
    label = distinct_label(figure.label)
    return Metric(figure.id, label, figure.unit, figure.direction, figure.definition, workload.title, "run")


def distinct_label(label: str) -> str:
    """Return the label of a program's figure; it differs from those of the catalogue."""
    return f"{label} of the program" if label.casefold() in _CATALOGUE_LABELS else label


def _external(identifier: str, figure: external_figures.ExternalFigure) -> Metric:
    """Return a figure of another tool, which does not state a better direction."""
    tool = external_figures.TOOLS[figure.tool]
    label = figure.name.replace("_", " ")
    return Metric(
        id=identifier,
        label=label[:1].upper() + label[1:],
        unit=figure.unit,
        direction="neutral",
        definition=f"Measured by {tool} under this name.",
        source=tool,
        section="run",
    )


def deciding_metric(slug: str, specification: Mapping[str, Any]) -> str:
    """Return the deciding metric: the specification's, or the workload's own."""
    stated = mapping_at(specification, "goal").get("optimise") or specification.get("deciding")
    if stated:
        return str(stated)
    workload = workloads.find(slug, specification.get("parameters"))
    return "elapsed_s" if workload is None else workload.decides


def deciding_choices(workload: WorkloadDefinition) -> dict[str, Metric]:
    """Return the possible deciding metrics by identifier, the workload's first."""
    figures = [_described(figure, workload) for figure in workload.figures]
    catalogued = [metric for metric in METRICS.values() if metric.shape == "number"]
    return {metric.id: metric for metric in (*figures, *catalogued) if metric.direction != "neutral"}


def why_not_deciding(identifier: str, workload: WorkloadDefinition) -> str:
    """Return why a metric cannot decide for ``workload``; empty if it can."""
    choices = deciding_choices(workload)
    if identifier in choices:
        return ""
    if identifier in METRICS or any(figure.id == identifier for figure in workload.figures):
        return f"{identifier} cannot decide: neither more nor less of it is better"
    by_name = {name.rpartition(".")[2]: name for name in choices}
    near = get_close_matches(identifier, [*choices, *by_name], n=3)
    suggestions = list(dict.fromkeys(by_name.get(name, name) for name in near)) or list(choices)[:_SHOWN_CHOICES]
    return f"{identifier!r} is not a metric of workload {workload.slug!r}; {'similar' if near else 'known'}: {', '.join(suggestions)}"


def is_metric(name: str) -> bool:
    """Return whether ``name`` is a metric or figure of merit, not a parameter."""
    try:
        find(name)
    except KeyError:
        return False
    return True


def why_not_metric(name: str) -> str:
    """Return why a name is no metric, with the figures of programs that it may mean."""
    figures = [figure.id for workload in workloads.registry() for figure in workload.figures]
    meant = [figure for figure in figures if figure.rpartition(".")[2] == name][:_SHOWN_CHOICES]
    return f"{name[:60]!r} is not a metric" + (f"; choose {' or '.join(meant)}" if meant else "")


def why_impossible(identifier: str, value: float) -> str:
    """Return why no run has this value of a metric; empty if it is possible."""
    unit, is_catalogued, written = find(identifier).unit, identifier in METRICS, repr(value).removesuffix(".0")
    if abs(value) > LARGEST:
        return f"{written} is no measurement"
    if value < 0 and (is_catalogued or unit in _NEVER_NEGATIVE) and identifier not in _DIFFERENCES:
        return f"{written} is impossible: {identifier} is never negative"
    if value > 1 and is_catalogued and unit == SHARE and identifier not in _ABOVE_ONE:
        return f"{written} is impossible: {identifier} is a share, and 1 is all of it"
    return ""


def described(identifier: str) -> Metric:
    """Return the description of a metric; an unknown one keeps its name, without unit."""
    try:
        return find(identifier)
    except KeyError:
        return Metric(identifier, identifier, "", "neutral", "", "an earlier version", "run")


def in_order(identifiers: Iterable[str]) -> list[str]:
    """Return metrics in display order: headline, workload, catalogue."""
    identifiers_in_order = [*HEADLINE, "", *(name for name in METRICS if name not in HEADLINE)]
    order = {name: number for number, name in enumerate(identifiers_in_order)}
    workload_position = order[""]
    return sorted(identifiers, key=lambda name: (order.get(name, workload_position), name))


def still_absent(not_available: Mapping[str, str], measured: Container[str]) -> dict[str, str]:
    """Return reasons of absent metrics, without those that ideal-network runs add."""
    return {
        metric: reason for metric, reason in not_available.items() if metric not in FROM_TWINS or metric not in measured
    }
