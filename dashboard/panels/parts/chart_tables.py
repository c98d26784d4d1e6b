"""The tables behind the charts of an experiment's page and its result parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from dashboard.charts.panel import Chart, Section
from dashboard.charts.tables import ChartTables
from dashboard.panels.experiment.results import Results
from dashboard.panels.parts import Measured, parts_of
from experiments.models import Experiment
from experiments.selectors.diagnosis import kept_diagnosis

Shown = Mapping[str, Any]


def part_sections(experiment: Experiment) -> list[Section]:
    """Yield the charts of every part that the data of an experiment fit."""
    sections = []
    for part in parts_of(Measured.of(experiment), {}):
        charts = list(_CHARTS[part.element](part.shown)) if part.element in _CHARTS else []
        if charts:
            sections.append(Section(part.element, part.title, charts))
    return sections


def _curves(shown: Shown) -> Iterator[Chart]:
    yield Chart("curve-time", "Transfer time by message size", shown["time"])
    yield Chart("curve-bandwidth", "Bandwidth by message size", shown["bandwidth"])


def _envelope(shown: Shown) -> Iterator[Chart]:
    yield Chart("envelope", "Wall time against load", shown["chart"])


def _ladder(shown: Shown) -> Iterator[Chart]:
    yield Chart("ladder", shown["metric"], shown["chart"])


def _phases(shown: Shown) -> Iterator[Chart]:
    if shown["measured"] is not None:
        yield Chart("phases", shown["first_label"], shown["measured"]["chart"])


def _inside_mpi(shown: Shown) -> Iterator[Chart]:
    for table in shown["tables"]:
        if table["chart"] is not None:
            name = f", {table['name']}" if table["name"] else ""
            yield Chart(table["element"], f"Efficiencies over ranks{name}", table["chart"])


def _grid(shown: Shown) -> Iterator[Chart]:
    for panel in [*(panel for group in shown["maps"] for panel in group["panels"]), *shown["lines"]]:
        views, subtitle = panel["views"], panel["subtitle"]
        more = views if views[1:] else ()
        yield Chart(panel["element"], panel["title"], views[0][1], subtitle=subtitle, views=more)


_CHARTS: Final[Mapping[str, Callable[[Shown], Iterator[Chart]]]] = {
    "inside-mpi": _inside_mpi,
    "grid": _grid,
    "curves": _curves,
    "envelope": _envelope,
    "ladder": _ladder,
    "phases": _phases,
}
"""Charts of parts by anchor."""


def charts_of(experiment: Experiment) -> ChartTables:
    """Return the charts of an experiment's page, cheap ones first."""

    def sections() -> Sequence[Section]:
        kept, _ = kept_diagnosis(experiment)
        return Results(experiment, kept.study if kept else None).sections()

    return ChartTables(experiment.slug, sections, lambda: part_sections(experiment))
