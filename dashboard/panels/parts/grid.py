"""A metric over two swept parameters as maps and as families of lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Final

from analysis import numbers
from analysis.catalogue import Metric
from analysis.statistics import Interval
from dashboard.charts.maps import Cells, Keys, contour, difference_map, heat_map
from dashboard.charts.parts import MOST_SERIES, Figure, Scale, log_ticks, ticks
from dashboard.charts.sweep import over_parameter, x_axis
from dashboard.labels import axis_label, parameter_label, parameters_sentence, value_words
from dashboard.panels.experiment.axes import XAxis
from dashboard.panels.experiment.results import line_of
from dashboard.panels.parts.measured import Measured, ResultSource
from experiments.metrics import find
from experiments.selectors import ConfigurationRow, swept_parameters
from experiments.selectors.certificates import QUANTITIES, certificate_statuses
from experiments.specification.parameters import LINK_PARAMETERS

IntervalOf = Callable[[Mapping[str, Any], Mapping[str, Any]], Interval | None]
"""Interval of the ratio of two points, by their parameters."""


def steps(
    families: Mapping[str, Sequence[ConfigurationRow]], x: str, metric: str, interval_of: IntervalOf
) -> list[tuple[str, str]]:
    """Return (family, gain words) for each family of rows.

    The words are ratios of medians with the intervals of the answer; none without repetitions.
    """
    gains = []
    for name, family in families.items():
        ordered = sorted((row for row in family if row.median(metric)), key=lambda row: row.parameters[x])
        pairs = (
            list(pairwise(ordered)) if len(families) == 1 else [(ordered[0], ordered[-1])] if len(ordered) > 1 else []
        )
        if words := "; ".join(_step(first, second, x, metric, interval_of) for first, second in pairs):
            gains.append((name, words))
    return gains


def _step(first: ConfigurationRow, second: ConfigurationRow, x: str, metric: str, interval_of: IntervalOf) -> str:
    ratio = (second.median(metric) or 0.0) / (first.median(metric) or 1.0)
    ends = numbers.interval(interval_of(second.parameters, first.parameters))
    change = f"{value_words(x, first.parameters[x])} → {value_words(x, second.parameters[x])}"
    return f"{change}: {numbers.times(ratio)}" + (f" ({ends})" if ends else "")


MOST_GROUPS: Final = 6
LEAST_FILLED: Final = 0.75
"""Least share of measured squares: a diagonal of points is no map."""


@dataclass(frozen=True)
class Grid:
    """The rows of one map, which differ only in `x` and `y`."""

    title: str
    x: str
    y: str
    rows: Sequence[ConfigurationRow]

    def values(self, name: str) -> list[Any]:
        """Return the settings of one axis, in order."""
        return sorted({row.parameters[name] for row in self.rows})

    def cells(self, rows: Sequence[ConfigurationRow | None], metric: str) -> Cells:
        """Return medians by y and x, for rows in the order of `self.rows`."""
        return [[row.median(metric) if row else None for row in line] for line in self._placed(rows)]

    def keys(self, rows: Sequence[ConfigurationRow | None]) -> Keys:
        """Return configurations by y and x; 0 for none."""
        return [[row.pk if row else 0 for row in line] for line in self._placed(rows)]

    def _placed(self, rows: Sequence[ConfigurationRow | None]) -> list[list[ConfigurationRow | None]]:
        at = {(r.parameters[self.y], r.parameters[self.x]): row for r, row in zip(self.rows, rows, strict=True)}
        return [[at.get((y, x)) for x in self.values(self.x)] for y in self.values(self.y)]


def grid_part(measured: Measured, _targets: Mapping[str, str]) -> dict[str, Any] | None:
    """Return maps and lines of every group; None without a grid or link sweep."""
    metric = measured.deciding
    if metric is None:
        return None
    rows = measured.main.with_metric(metric)
    names = [name for name in swept_parameters(rows) if _ordered(rows, name)]
    if not names:
        return None
    x = _across(rows, names)
    description = find(metric, measured.main.experiment.specification)
    grids = _grids(rows, x, names)[:MOST_GROUPS]
    maps = [_maps(grid, measured, description) for grid in grids]
    lines = _line_charts(measured, rows, x, grids, description) if maps or x in QUANTITIES else []
    if not maps and not lines:
        return None
    for outer, group in enumerate(maps, start=1):
        for inner, panel in enumerate(group["panels"], start=1):
            panel["element"] = f"map-{outer}-{inner}"
    for index, panel in enumerate(lines, start=1):
        panel["element"] = f"lines-{index}"
    return {"metric": description.label, "maps": maps, "lines": lines, "x": parameter_label(x).lower()}


def _ordered(rows: Sequence[ConfigurationRow], name: str) -> bool:
    return all(isinstance(row.parameters.get(name), int | float) for row in rows)


def _across(rows: Sequence[ConfigurationRow], names: Sequence[str]) -> str:
    """Return the x parameter: hosts, else the one with the most values."""

    def rank(name: str) -> tuple[bool, int, bool, int]:
        index = LINK_PARAMETERS.index(name) if name in LINK_PARAMETERS else 0
        return name == "hosts", len({row.parameters[name] for row in rows}), name in QUANTITIES, -index

    return max(names, key=rank)


def _grids(rows: Sequence[ConfigurationRow], x: str, names: Sequence[str]) -> list[Grid]:
    """Return the grids over x; with a link's x, y is another link parameter."""
    across = [name for name in names if name != x and (x not in QUANTITIES or name in QUANTITIES)]
    grids = []
    for y in across:
        for rest, group in _by_rest(rows, [name for name in swept_parameters(rows) if name not in (x, y)]).items():
            grid = Grid(rest, x, y, group)
            columns, lines = len(grid.values(x)), len(grid.values(y))
            if columns > 1 and lines > 1 and len(group) >= LEAST_FILLED * columns * lines:
                grids.append(grid)
    return grids


def _by_rest(rows: Sequence[ConfigurationRow], names: Sequence[str]) -> dict[str, list[ConfigurationRow]]:
    groups: dict[str, list[ConfigurationRow]] = {}
    for row in rows:
        groups.setdefault(parameters_sentence(row.parameters, names), []).append(row)
    return groups


def _maps(grid: Grid, measured: Measured, metric: Metric) -> dict[str, Any]:
    main_cells = grid.cells(grid.rows, metric.id)
    matching = [(source, _matching(source, grid.rows, metric.id)) for source in measured.published]
    references = [(source, grid.cells(rows, metric.id), grid.keys(rows)) for source, rows in matching]
    references = [reference for reference in references if any(v is not None for row in reference[1] for v in row)]
    everything = [v for cells in (main_cells, *(c for _, c, _ in references)) for row in cells for v in row if v]
    scale = Scale.of(everything, metric.unit)
    look: dict[str, Any] = {
        "x": [value_words(grid.x, value) for value in grid.values(grid.x)],
        "y": [value_words(grid.y, value) for value in grid.values(grid.y)],
        "x_title": axis_label(grid.x, measured.main.experiment.workload),
        "y_title": axis_label(grid.y, measured.main.experiment.workload),
        "of": grid.keys(grid.rows),
    }
    ends = (min(everything), max(everything))
    name = f"{grid.title}, " if grid.title else ""
    panels = [
        _panel(
            f"{name}{measured.main.name.lower()}",
            scale.unit if measured.main.experiment.published else f"{scale.unit}, medians",
            {
                "Map": heat_map(**look, cells=main_cells, scale=scale, ends=ends),
                "Contour": contour(**look, cells=main_cells, scale=scale),
            },
        )
    ]
    for source, cells, keys in references:
        printed = {"Map": heat_map(**look, cells=cells, scale=scale, ends=ends, configurations=keys)}
        panels.append(_panel(f"{name}{source.name.lower()}", scale.unit, printed))
        difference = {
            "Percent": difference_map(**look, cells=main_cells, reference=cells),
            "Ratio": difference_map(**look, cells=main_cells, reference=cells, as_ratio=True),
        }
        panels.append(_panel(f"{name}difference", f"from {source.name.lower()}", difference))
    return {"panels": panels, "width": "c4" if references else "c6"}


def _panel(title: str, subtitle: str, views: Mapping[str, Figure]) -> dict[str, Any]:
    return {"title": title[:1].upper() + title[1:], "subtitle": subtitle, "views": list(views.items())}


def _matching(source: ResultSource, rows: Sequence[ConfigurationRow], metric: str) -> list[ConfigurationRow | None]:
    """Return the source's row with the same varied settings as each row."""
    theirs = source.with_metric(metric)
    names = sorted({*swept_parameters(theirs), *swept_parameters(rows)})

    def key(row: ConfigurationRow) -> tuple[Any, ...]:
        return tuple(row.parameters.get(name, 0 if name in QUANTITIES else None) for name in names)

    by_settings = {key(row): row for row in theirs}
    return [by_settings.get(key(row)) for row in rows]


def _line_charts(
    measured: Measured, rows: Sequence[ConfigurationRow], x: str, grids: Sequence[Grid], metric: Metric
) -> list[dict[str, Any]]:
    varied = [name for name in swept_parameters(rows) if name != x]
    groups = [(grid.title, _by_rest(grid.rows, [grid.y])) for grid in grids] or [("", _by_rest(rows, varied))]
    statuses = certificate_statuses([row.pk for row in rows]) if x in QUANTITIES else {}
    achieved = {configuration: status.achieved for configuration, status in statuses.items()}
    charts, repeated = [], any(len(row.values[metric.id]) > 1 for row in rows)
    for title, all_families in groups:
        families = dict(list(all_families.items())[:MOST_SERIES])
        views = {"As requested": _lines(measured, families, x, metric, None)}
        if all(x in achieved.get(row.pk, {}) for family in families.values() for row in family):
            views["As measured"] = _lines(measured, families, x, metric, achieved)
        scope = "as published" if measured.main.experiment.published else "every trial, medians and ranges"
        chart = _panel(title or metric.label, scope, views)
        gains = steps(families, x, metric.id, partial(measured.interval, metric.id))
        charts.append(
            {**chart, "published": views["As requested"].get("published"), "steps": gains, "intervals": repeated}
        )
    return charts


def _lines(
    measured: Measured,
    families: Mapping[str, Sequence[ConfigurationRow]],
    x: str,
    metric: Metric,
    achieved: Mapping[int, Mapping[str, float]] | None,
) -> Figure:
    rows = [row for family in families.values() for row in family]
    axis = XAxis.of(x, rows, measured.main.experiment.workload)
    lines, published = [], []
    for name, family in families.items():
        ordered = sorted(family, key=lambda row: row.parameters[x])
        xs = axis.values(ordered)
        if achieved is not None:
            xs = [axis.scale(achieved[row.pk][x]) if axis.scale else achieved[row.pk][x] for row in ordered]
        lines.append(line_of(name or measured.main.name, xs, ordered, metric.id))
        for source in measured.published:
            rows_of_source = [r for r in _matching(source, ordered, metric.id) if r is not None]
            if rows_of_source:
                label = f"{source.name}, {name}" if name else source.name
                published.append(axis.published(label, rows_of_source, metric.id))
    title = axis.title if achieved is None else axis.title.replace(" (", ", as measured (")
    figure = over_parameter(lines, published, quantity=metric.label, unit=metric.unit, parameter=title)
    if achieved is not None:  # ticks at the settings, to show the deviation of the links
        settings = sorted(set(axis.values(rows)))
        everywhere = sorted({*settings, *(value for line in lines for value in line.x)})
        axis_layout = x_axis(everywhere, title)
        tick_layout = log_ticks if axis_layout.get("type") == "log" else ticks
        axis_layout.pop("ticktext", None)
        figure["layout"]["xaxis"] = {**axis_layout, **tick_layout(settings, *axis_layout["range"])}
    return figure
