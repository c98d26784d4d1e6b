"""The explorer's query strings, pivot and charts, for pages and REST."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, Final

from django.db.models import QuerySet
from django.http import QueryDict

from analysis.catalogue import METRICS
from dashboard.charts.panel import Chart
from dashboard.charts.parts import INTERVAL, MOST_SERIES, RANGE, shortened
from dashboard.charts.pivot import Axes, Mark, pivot_panel
from dashboard.filters import ConfigurationFilter
from dashboard.filters.fields import first_error
from dashboard.labels import own_unit, parameter_label, value_words, workload_title
from dashboard.requests.explore_leads import Leads, leads
from experiments import workloads
from experiments.access import visible_experiments
from experiments.errors import CannotExplore
from experiments.metrics import HEADLINE, described, in_order, is_metric
from experiments.models import Configuration, Experiment, Measurement
from experiments.selectors.explorer import COLUMNS, ConfigurationCounts, Pivot, PivotCell, Query, check, counts
from experiments.specification.parameters import known_parameters

EACH: Final = "each"
STATISTICS: Final = (
    (EACH, "Each configuration: median, full range"),
    ("median", "Pooled: median, full range"),
    ("mean", "Pooled: mean, 95 % interval"),
)
"""The first never pools configurations; the others pool all of a position and colour."""
ORDERS: Final = {
    "": ("Newest first", ("-experiment_id", "position", "pk")),
    "hosts": ("Hosts, few first", ("hosts", "-experiment_id", "position", "pk")),
    "name": ("Experiment, A to Z", ("experiment__name", "experiment_id", "position", "pk")),
}
LINEAR: Final = "0"
SCALES: Final = (("", "Automatic"), (LINEAR, "Linear"), ("1", "Logarithmic"))
"""Choices of ``xlog`` and ``ylog``."""
MOST_PANELS: Final = 6
AXES: Final = ("y", "x", "colour", "facet", "scope", "columns", "order")
NAMES: Final = frozenset({*AXES, *("statistic", "xlog", "ylog", "page"), *ConfigurationFilter.base_filters})
ROWS: Final = ("configurations", "trials", "measurements", "brief")
"""Rows of an export; ``brief`` are trials with few columns."""
_MOST_COLUMNS: Final = 30
_LONGEST_LEGEND: Final = 44


@dataclass(frozen=True, slots=True)
class Presentation:
    """Presentation of the answer."""

    statistic: str
    x_log: bool | None
    """Logarithmic; None if the values decide."""
    y_log: bool | None
    columns: tuple[str, ...]
    """Metrics of the table."""
    order: str


@dataclass(frozen=True, slots=True)
class Question:
    """A parsed query string: configurations, axes and presentation."""

    query: Query
    look: Presentation
    filters: ConfigurationFilter
    configurations: QuerySet[Configuration]

    def counts(self) -> ConfigurationCounts:
        """Return the numbers of matching configurations by workload and cluster."""
        chosen = self.filters.form.cleaned_data["workload"]
        return counts(self.filters.of_any_workload, self.filters.whole_designs, chosen)


def parse_question(user: Any, params: QueryDict) -> Question:
    """Return the parsed query string of a user. Raise CannotExplore."""
    query, look = _axes(params)
    check(query)
    filters = ConfigurationFilter(params, visible_experiments(user, by_keys=True), scope=query.scope)
    if not filters.is_valid():
        name, sentence = first_error(filters.errors)
        raise CannotExplore(f"{filters.form[name].label}: {sentence}", field=name)
    return Question(query, look, filters, filters.qs)


def _axes(params: QueryDict) -> tuple[Query, Presentation]:
    def one(name: str, default: str = "") -> str:
        return params.get(name, default).strip() or default

    statistic = _allowed(one("statistic", EACH), [name for name, _ in STATISTICS], "statistic")
    query = Query(
        y=one("y", "elapsed_s"),
        x=one("x", "hosts"),
        colour=one("colour"),
        facet=one("facet"),
        scope=_allowed(one("scope", "all"), Measurement.Scope.values, "scope"),
        pooled=statistic != EACH,
    )
    columns = tuple(dict.fromkeys(name for text in params.getlist("columns") for name in text.split(",") if name))
    for name in columns:
        if not is_metric(name):
            raise CannotExplore(f"columns: {name[:80]!r} is not a metric.", field="columns")
    drawn = [name for name in (query.y, query.x) if is_metric(name)]
    look = Presentation(
        statistic=statistic,
        x_log=_is_log(one("xlog")),
        y_log=_is_log(one("ylog")),
        columns=columns[:_MOST_COLUMNS] or tuple(dict.fromkeys([*drawn, *HEADLINE])),
        order=_allowed(one("order"), list(ORDERS), "order"),
    )
    return query, look


def _is_log(scale: str) -> bool | None:
    return None if not scale else scale != LINEAR


def coloured(question: Question, matched: ConfigurationCounts) -> Question:
    """Return the question with the default colour: workloads, else experiments if few."""
    experiments = question.configurations.order_by().values("experiment").distinct()[: MOST_SERIES + 1]
    by = "workload" if len(matched.workloads) > 1 else "experiment" if 1 < len(experiments) <= MOST_SERIES else ""
    return replace(question, query=replace(question.query, colour=by))


def _allowed(value: str, allowed: Sequence[str], name: str) -> str:
    if value not in allowed:
        raise CannotExplore(f"{name}: {value[:40]!r} is not one of {', '.join(filter(None, allowed))}.", field=name)
    return value


@dataclass(frozen=True, slots=True)
class ExportRows:
    """Rows of an export; ``every`` includes excluded trials."""

    kind: str = "configurations"
    every: bool = False


def rows_of(params: QueryDict) -> ExportRows:
    """Return the rows of an export. Raise CannotExplore."""
    kind = _allowed(params.get("rows", "").strip() or ROWS[0], ROWS, "rows")
    every = _allowed(params.get("every", "").strip(), ("", "true", "false", "on", "1", "0"), "every")
    if every in ("true", "on", "1") and kind == ROWS[0]:
        raise CannotExplore(
            "every: rows are configurations; it is for rows=trials, rows=brief and rows=measurements.", field="every"
        )
    return ExportRows(kind, every in ("true", "on", "1"))


def table_of(question: Question) -> QuerySet[Configuration]:
    """Return the configurations in the order of the table, with their experiments."""
    related = question.configurations.select_related("experiment__cluster", "experiment__project")
    return related.order_by(*ORDERS[question.look.order][1])


def panels(pivoted: Pivot, question: Question) -> list[Chart]:
    """Return one chart per value of the facet, of measured before published values."""
    query, look = question.query, question.look
    leading = leads(question.configurations, question.filters, query, pivoted)
    by_panel: dict[Any, list[PivotCell]] = {}
    for cell in sorted(pivoted.cells, key=lambda cell: (cell.published, _order(cell.facet))):
        by_panel.setdefault(_panel(cell), []).append(cell)
    titles = _titles(pivoted, query)
    y, x = described(query.y), described(query.x) if pivoted.is_scatter else None
    axes = Axes(
        x=x.label if x else label(query.x),
        x_unit=x.unit if x else _BASE_UNITS.get(query.x) or own_unit(query.x),
        y=y.label,
        y_unit=y.unit,
        x_log=look.x_log,
        y_log=look.y_log,
        leads=leading.address,
        bars=INTERVAL if look.statistic == "mean" else RANGE,
    )
    charts = []
    for number, cells in enumerate(list(by_panel.values())[:MOST_PANELS]):
        series = _series(cells, query, look, leading, titles)
        figure = pivot_panel(series, axes, scatter=pivoted.is_scatter)
        title = words(query.facet, cells[0].facet, titles) if query.facet else f"{y.label} over {axes.x.lower()}"
        title += ", published" if cells[0].published else ""
        subtitle = label(query.facet) if query.facet else dict(STATISTICS)[look.statistic].lower()
        charts.append(
            Chart(f"pivot-{number}", title, figure, None, max(0, len(series) - MOST_SERIES), subtitle, logarithm=False)
        )
    return charts


_BASE_UNITS: Final = {"link.bandwidth": "bit/s", "link.delay": "s", "link.jitter": "s", "link.mtu": "B"}


def panels_left_out(pivoted: Pivot) -> int:
    """Return the number of facet values beyond the shown panels."""
    return max(0, len({_panel(cell) for cell in pivoted.cells}) - MOST_PANELS)


def _panel(cell: PivotCell) -> tuple[bool, str]:
    return cell.published, repr(cell.facet)


def _series(
    cells: Iterable[PivotCell], query: Query, look: Presentation, leading: Leads, titles: Mapping[str, str]
) -> list[tuple[str, list[list[Mark]]]]:
    """Return the marks by colour and line."""
    by_colour: dict[str, list[PivotCell]] = {}
    for cell in cells:
        by_colour.setdefault(repr(cell.colour), []).append(cell)
    series = []
    for group in sorted(by_colour.values(), key=lambda cells: _order(cells[0].colour)):
        name = described(query.y).label
        if query.colour:
            prefix = "" if query.colour in COLUMNS else f"{label(query.colour)} "
            name = shortened(f"{prefix}{words(query.colour, group[0].colour, titles)}", _LONGEST_LEGEND)
        by_line: dict[str, list[PivotCell]] = {}
        for cell in group:
            by_line.setdefault(cell.line, []).append(cell)
        lines = [sorted(cells, key=lambda cell: _order(cell.x)) for cells in by_line.values()]
        series.append((name, [[_mark(cell, query, look, leading, titles) for cell in line] for line in lines]))
    return series


def _mark(cell: PivotCell, query: Query, look: Presentation, leading: Leads, titles: Mapping[str, str]) -> Mark:
    number = isinstance(cell.x, int | float) and not isinstance(cell.x, bool)
    x = cell.x if number else words(query.x, cell.x, titles)
    is_mean = look.statistic == "mean"
    value = cell.mean if is_mean else cell.median
    low, high = (cell.interval or (None, None)) if is_mean else (cell.low, cell.high)
    return Mark(x, value, low, high, cell.dots, cell.trials, _together(cell), leading.suffix(cell))


def _together(cell: PivotCell) -> str:
    """Return an identifier of marks that are highlighted together across panels."""
    key = cell.same or repr((cell.x, cell.colour))
    return blake2b(key.encode(), digest_size=5).hexdigest()


def _order(value: Any) -> tuple[int, float, str]:
    number = isinstance(value, int | float)
    return (0, float(value), "") if number else (1, 0.0, str(value))


def label(name: str) -> str:
    """Return the label of a dimension."""
    return described(name).label if name and is_metric(name) else parameter_label(name)


def _titles(pivoted: Pivot, query: Query) -> Mapping[str, str]:
    """Return slug -> title of experiments: the name, or the slug of ambiguous names."""
    axes = [axis for axis in ("x", "colour", "facet") if getattr(query, axis) == "experiment"]
    slugs = {getattr(cell, axis) for axis in axes for cell in pivoted.cells}
    if not slugs:
        return {}
    names = dict(Experiment.objects.filter(slug__in=slugs).values_list("slug", "name"))
    counts = Counter(names.values())
    return {slug: name if counts[name] == 1 else slug for slug, name in names.items()}


def words(name: str, value: Any, titles: Mapping[str, str]) -> str:
    """Return the value of a dimension in words; ``titles`` are those of experiments."""
    if value is None:
        return "not set"
    if name == "experiment":
        return titles.get(value, value)
    if name == "workload":
        return workload_title(value)
    return str(value) if name in COLUMNS and isinstance(value, str) else value_words(name, value)


def options(matched: ConfigurationCounts, query: Query) -> dict[str, list[tuple[str, str]]]:
    """Return the choices of axes: parameters and metrics of matching workloads."""
    slugs = [slug for slug, _ in matched.workloads]
    parameters: dict[str, None] = dict.fromkeys(COLUMNS)
    metrics = set(METRICS) | {name for name in (query.x, query.y) if is_metric(name)}
    for slug in slugs:
        workload = workloads.find(slug)
        if workload is not None:
            parameters |= dict.fromkeys(sorted(known_parameters(slug)))
            metrics |= {figure.id for figure in workload.figures}
    axis_names = [name for name in (query.x, query.colour, query.facet) if name and not is_metric(name)]
    parameters |= dict.fromkeys(axis_names)
    return {
        "parameters": [(name, label(name)) for name in parameters],
        "metrics": [(name, described(name).label) for name in in_order(metrics)],
    }


def cells_as_data(pivoted: Pivot) -> list[Mapping[str, Any]]:
    """Return the pivot as REST data."""
    return [
        {
            "x": cell.x,
            "colour": cell.colour,
            "facet": cell.facet,
            "configurations": cell.configurations,
            "trials": cell.trials,
            "median": cell.median,
            "minimum": cell.low,
            "maximum": cell.high,
            "mean": cell.mean,
            "interval": list(cell.interval) if cell.interval else None,
        }
        for cell in pivoted.cells
    ]
