"""The tables behind the charts of a page, by the names that the charts have in it: for REST and the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from dashboard.charts.panel import Chart, Section
from dashboard.charts.parts import Figure
from dashboard.charts.table import Row, as_csv, table_of

Source = Callable[[], Sequence[Section]]


@dataclass(frozen=True, slots=True)
class ChartTable:
    """A chart's numbers as they stand: of the view that it opens with, or of another."""

    name: str
    title: str
    view: str | None
    columns: Sequence[str]
    rows: Sequence[Row]

    def csv(self) -> str:
        return as_csv(self.columns, self.rows)


class ChartTables:
    """The charts of what is called ``of``. ``sources`` are asked in turn: what costs more comes later, and is asked for the
    list and for a chart that none before it has.
    """

    def __init__(self, of: str, *sources: Source) -> None:
        self.of, self._sources = of, sources
        self._read: list[Sequence[Section]] = []

    def listed(self) -> list[dict[str, object]]:
        """Return name, title, section and views of each."""
        return [
            {"name": chart.element, "title": chart.title, "section": title, "views": [view for view, _ in chart.views]}
            for title, chart in self._charts()
        ]

    def table(self, name: str, view: str | None = None) -> ChartTable:
        """Return the table behind a chart. Raise LookupError in words where there is no such chart or view."""
        chart = next((chart for _, chart in self._charts() if chart.element == name), None)
        if chart is None:
            known = ", ".join(chart.element for _, chart in self._charts())
            raise LookupError(f"{self.of} has no chart {name!r}; it has {known or 'none so far'}")
        shown, figure = _view(chart, view)
        return ChartTable(name, chart.title, shown, *table_of(figure))

    def _charts(self) -> Iterator[tuple[str, Chart]]:
        for place, source in enumerate(self._sources):
            if place == len(self._read):
                self._read.append(source())
            for section in self._read[place]:
                yield from ((section.title, chart) for chart in section.charts)


def _view(chart: Chart, wanted: str | None) -> tuple[str | None, Figure]:
    views = dict(chart.views)
    if wanted is None:
        return (next(iter(views)), chart.figure) if views else (None, chart.figure)
    if wanted not in views:
        raise LookupError(f"{chart.element} has no view {wanted!r}; it has {', '.join(views) or 'one only'}")
    return wanted, views[wanted]
