"""The tables behind the charts of a page, for REST and the command line."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dashboard.charts.panel import Chart, Section
from dashboard.charts.parts import Figure, bars_note

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
_SURFACES: Final = ("heatmap", "contour")

Row = Sequence[Any]


def table_of(figure: Figure) -> tuple[list[str], list[Row]]:
    """Return column names and rows: series, both axes, lowest, highest and n.

    Bars that are intervals give the ends of the interval in place of lowest and highest.
    For a map: rows, columns and values, which ``meta`` names if they are more than the colour.
    """
    x, y = (_title(figure, axis) for axis in ("x", "y"))
    traces = [
        trace for trace in figure["data"] if trace.get("hoverinfo") != "skip" and trace.get("visible") is not False
    ]
    surfaces = [trace for trace in traces if trace.get("type") in _SURFACES]
    if surfaces:
        values = surfaces[0].get("meta") or [surfaces[0].get("name") or "value"]
        return [x, y, *values], [row for trace in surfaces for row in _surface(trace)]
    ends = ("interval low", "interval high") if "interval" in bars_note(figure) else ("lowest", "highest")
    is_wide = any("error_x" in trace for trace in traces)
    names = ["series", x, y, *ends, "n", *(f"{x}, {end}" for end in ends if is_wide)]
    return names, [row for trace in traces for row in _line(trace, is_wide=is_wide)]


def as_csv(columns: Sequence[str], rows: Sequence[Row]) -> str:
    """Return the table as CSV (RFC 4180), with formulas marked as text."""
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow(map(_marked, columns))
    writer.writerows([_marked(cell) for cell in row] for row in rows)
    return stream.getvalue()


def _title(figure: Figure, axis: str) -> str:
    title = figure["layout"].get(f"{axis}axis", {}).get("title")
    return str(title.get("text") if isinstance(title, dict) else title or "") or axis


def _surface(trace: Figure) -> Iterator[Row]:
    more = trace.get("meta") is not None
    for index, (y, values) in enumerate(zip(trace["y"], trace["z"], strict=True)):
        for column, (x, value) in enumerate(zip(trace["x"], values, strict=True)):
            if not more:
                yield [x, y, value]
            elif value is not None:
                yield [x, y, *trace["customdata"][index][column]]


def _line(trace: Figure, *, is_wide: bool = False) -> Iterator[Row]:
    spreads = trace.get("customdata") or []
    for index, (x, y) in enumerate(zip(trace.get("x") or (), trace.get("y") or (), strict=True)):
        spread = spreads[index] if index < len(spreads) else None
        has_spread = isinstance(spread, list | tuple) and len(spread) == 3
        if x is not None:  # None separates two lines of one series
            yield [
                trace.get("name") or "",
                x,
                y,
                *(spread if has_spread and spread is not None else (*_ends(trace, "y", index), None)),
                *(_ends(trace, "x", index) if is_wide else ()),
            ]


def _ends(trace: Figure, axis: str, index: int) -> tuple[float | None, float | None]:
    """Return the ends of the bar of a point, or None for both without a bar."""
    bar = trace.get(f"error_{axis}")
    value = trace[axis][index]
    if bar is None or value is None or not (bar["array"][index] or bar["arrayminus"][index]):
        return None, None
    return value - bar["arrayminus"][index], value + bar["array"][index]


def _marked(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


Source = Callable[[], Sequence[Section]]


@dataclass(frozen=True, slots=True)
class ChartTable:
    """Numbers of a chart: of its initial view, or of another."""

    name: str
    title: str
    view: str | None
    columns: Sequence[str]
    rows: Sequence[Row]

    def csv(self) -> str:
        return as_csv(self.columns, self.rows)


class ChartTables:
    """Charts of the object ``of``.

    ``sources`` are read in order: expensive ones come last, for the list and for charts that earlier ones lack.
    """

    def __init__(self, of: str, *sources: Source) -> None:
        self.of, self._sources = of, sources
        self._read: list[Sequence[Section]] = []

    def listed(self) -> list[dict[str, object]]:
        """Return name, title, section and views of each chart."""
        return [
            {"name": chart.element, "title": chart.title, "section": title, "views": [view for view, _ in chart.views]}
            for title, chart in self._charts()
        ]

    def table(self, name: str, view: str | None = None) -> ChartTable:
        """Return the table behind a chart. Raise LookupError for an unknown chart or view."""
        chart = next((chart for _, chart in self._charts() if chart.element == name), None)
        if chart is None:
            names = ", ".join(chart.element for _, chart in self._charts())
            raise LookupError(f"{self.of} has no chart {name!r}; it has {names or 'none so far'}")
        view_name, figure = _view(chart, view)
        return ChartTable(name, chart.title, view_name, *table_of(figure))

    def _charts(self) -> Iterator[tuple[str, Chart]]:
        for index, source in enumerate(self._sources):
            if index == len(self._read):
                self._read.append(source())
            for section in self._read[index]:
                yield from ((section.title, chart) for chart in section.charts)


def _view(chart: Chart, name: str | None) -> tuple[str | None, Figure]:
    views = dict(chart.views)
    if name is None:
        return (next(iter(views)), chart.figure) if views else (None, chart.figure)
    if name not in views:
        raise LookupError(f"{chart.element} has no view {name!r}; it has {', '.join(views) or 'one only'}")
    return name, views[name]
