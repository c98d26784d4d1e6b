"""The tables behind the charts of an experiment's page and its result parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from dashboard.charts.panel import Chart, Section
from dashboard.charts.tables import ChartTables
from dashboard.panels.experiment.results import Results
from dashboard.panels.parts import Measured, parts_of
from experiments.models import Experiment
from experiments.selectors.diagnosis import cached_diagnosis

Context = Mapping[str, Any]


def part_sections(experiment: Experiment) -> list[Section]:
    """Yield the charts of every part that the data of an experiment fit."""
    sections = []
    for part in parts_of(Measured.of(experiment), {}):
        charts = list(_CHARTS[part.element](part.context)) if part.element in _CHARTS else []
        if charts:
            sections.append(Section(part.element, part.title, charts))
    return sections


def _curves(context: Context) -> Iterator[Chart]:
    yield Chart("curve-time", "Transfer time by message size", context["time"])
    yield Chart("curve-bandwidth", "Bandwidth by message size", context["bandwidth"])


def _envelope(context: Context) -> Iterator[Chart]:
    yield Chart("envelope", "Wall time against load", context["chart"])


def _search(context: Context) -> Iterator[Chart]:
    yield Chart("search", "Best so far", context["chart"])
    if context["importance"] is not None:
        yield Chart("importance", "Importance of each parameter", context["importance"])


def _ladder(context: Context) -> Iterator[Chart]:
    yield Chart("ladder", context["metric"], context["chart"])


def _phases(context: Context) -> Iterator[Chart]:
    if context["measured"] is not None:
        yield Chart("phases", context["first_label"], context["measured"]["chart"])


def _inside_mpi(context: Context) -> Iterator[Chart]:
    for table in context["tables"]:
        if table["chart"] is not None:
            name = f", {table['name']}" if table["name"] else ""
            yield Chart(table["element"], f"Efficiencies over ranks{name}", table["chart"])


def _grid(context: Context) -> Iterator[Chart]:
    for panel in [*(panel for group in context["maps"] for panel in group["panels"]), *context["lines"]]:
        views, subtitle = panel["views"], panel["subtitle"]
        more = views if views[1:] else ()
        yield Chart(panel["element"], panel["title"], views[0][1], subtitle=subtitle, views=more)


_CHARTS: Final[Mapping[str, Callable[[Context], Iterator[Chart]]]] = {
    "search": _search,
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
        stored, _ = cached_diagnosis(experiment)
        return (Results(experiment, stored.study, stored.answer) if stored else Results(experiment)).sections()

    return ChartTables(experiment.slug, sections, lambda: part_sections(experiment))
