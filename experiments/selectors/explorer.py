"""Explorer: a metric over a parameter or metric, by colour and panel.

The unit is the configuration, with its counted trials in ``Summary``. A cell of several configurations counts each once, by its median:
trials of one configuration are not independent.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Any, Final

from django.contrib.postgres.fields import ArrayField
from django.db.models import (
    Aggregate,
    Avg,
    BigIntegerField,
    Count,
    F,
    FilteredRelation,
    FloatField,
    Func,
    Max,
    Min,
    Q,
    QuerySet,
    StdDev,
    Sum,
)
from django.db.models.fields.json import KeyTransform

from analysis.statistics import moments_interval
from analysis.trust_level import FLAGGED
from experiments.common import budget
from experiments.errors import CannotExplore
from experiments.metrics import LARGEST, is_metric
from experiments.models import Cluster, Configuration, Experiment, Summary
from experiments.models.states import measured
from experiments.traffic import is_traffic

MOST_CELLS: Final = 1500
MOST_DOTS: Final = 1000
COLUMNS: Final = {
    "hosts": "hosts",
    "ranks": "ranks",
    "workload": "experiment__workload",
    "experiment": "experiment__slug",
    "cluster": "experiment__cluster__name",
    "project": "experiment__project__name",
}
"""Dimensions that are columns of tables; every other one is a parameter."""


_NAME: Final = re.compile(r"[A-Za-z][\w.\-]{0,79}")


@dataclass(frozen=True, slots=True)
class Query:
    """A metric over a parameter or metric; empty colour and facet mean none."""

    y: str = "elapsed_s"
    x: str = "hosts"
    colour: str = ""
    facet: str = ""
    scope: str = "all"
    pooled: bool = True
    """True if all configurations of one position and colour form one cell."""
    published_apart: bool = True
    """True if a pooled cell is of measured or of published configurations only."""


def check(query: Query) -> None:
    """Raise CannotExplore for an impossible name."""
    for axis in ("x", "y", "colour", "facet"):
        name = getattr(query, axis)
        if name and not _NAME.fullmatch(name):
            raise CannotExplore(f"{name[:80]!r} is not the name of a parameter or metric.", field=axis)
    if not is_metric(query.y):
        raise CannotExplore(f"{query.y!r} is not a metric; the vertical axis needs one.", field="y")
    for axis in ("colour", "facet"):
        if (name := getattr(query, axis)) and is_metric(name):
            raise CannotExplore(f"{name} is a metric; colour and panels need a parameter.", field=axis)


@dataclass(frozen=True, slots=True)
class PivotCell:
    """One point of the pivot: its position, and the metric over its configurations."""

    x: Any
    colour: Any
    facet: Any
    configurations: int
    trials: int
    median: float
    low: float
    """Smallest and largest value of any trial."""
    high: float
    dots: tuple[float, ...]
    """The trials of a single configuration, else the medians of (up to 50) configurations."""
    pooled: tuple[float, float] | None = None
    """Mean and standard deviation of the medians of several configurations."""
    line: str = ""
    """Equal for single configurations of one experiment that differ in x alone."""
    configuration: int = 0
    """Key of a single configuration; 0 for a pooled cell."""
    same: str = ""
    """Equal for single configurations that differ only in panel, experiment and cluster."""
    published: bool = False

    @property
    def mean(self) -> float:
        """Return the mean of a single configuration's trials, else of the medians."""
        return fmean(self.dots) if self.pooled is None else self.pooled[0]

    @property
    def interval(self) -> tuple[float, float] | None:
        """Return the 95 % t interval of the mean, computed on demand."""
        if self.pooled is not None:
            return moments_interval(*self.pooled, self.configurations, smallest=self.low)
        if len(self.dots) < 2:
            return None
        return moments_interval(self.mean, stdev(self.dots), len(self.dots), smallest=self.low)


@dataclass(frozen=True, slots=True)
class Pivot:
    """Cells of a query; ``cut`` if there are more."""

    cells: list[PivotCell]
    cut: bool
    is_scatter: bool = False


class Median(Aggregate):
    """The continuous median of PostgreSQL."""

    function = "PERCENTILE_CONT"
    template = "%(function)s(0.5) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = FloatField()


class Some(Aggregate):
    """Up to 50 of the values, for dots."""

    template = "(array_agg(%(expressions)s))[1:50]"
    output_field = ArrayField(FloatField())


class Hashed(Func):
    """An integer per value of a parameter, which sorts much faster than jsonb."""

    template = "jsonb_hash_extended(%(expressions)s, 0)"
    output_field = BigIntegerField()


def pivot(configurations: QuerySet[Configuration], query: Query) -> Pivot:
    """Return the cells of a query, in at most two queries. Raise CannotExplore."""
    check(query)
    # From configurations instead of summaries, so that filters are applied once.
    rows = configurations.filter(_summary(query.y, query.scope))
    if is_metric(query.x):
        return _scatter(rows, query)
    return _cells(rows, query) if query.pooled else _configuration_cells(rows, query)


def _summary(metric: str, scope: str) -> Q:
    """Return the condition on summaries that can be added up and squared.

    One with larger values would end the query of all.
    """
    bounds = {"summaries__minimum__gte": -LARGEST, "summaries__maximum__lte": LARGEST}
    return Q(summaries__metric=metric, summaries__scope=scope, **bounds)


def _key(name: str) -> Any:
    return F(COLUMNS[name]) if name in COLUMNS else Hashed(KeyTransform(name, "parameters"))


def _cells(rows: QuerySet[Configuration], query: Query) -> Pivot:
    names = {axis: name for axis in ("x", "colour", "facet") if (name := getattr(query, axis))}
    grouped = (
        rows.annotate(x=_key(query.x), **{axis: _key(name) for axis, name in names.items() if axis != "x"})
        .exclude(x=None)
        .order_by()
        .values(*names, *(["experiment__published"] if query.published_apart else []))
        .annotate(
            # Only columns of the summaries' index: their rows are scattered over the table.
            configurations=Count("summaries__configuration_id"),
            trials=Sum("summaries__n"),
            middle=Median("summaries__median"),
            low=Min("summaries__minimum"),
            high=Max("summaries__maximum"),
            mean=Avg("summaries__median"),
            spread=StdDev("summaries__median", sample=True),
            one=Max("summaries__configuration_id"),
            some=Some("summaries__median"),
        )[: MOST_CELLS + 1]
    )
    groups = list(grouped)
    ones = Summary.objects.filter(configuration__in=[row["one"] for row in groups[:MOST_CELLS]])
    single_rows = ones.filter(metric=query.y, scope=query.scope).values_list(
        "configuration_id", "configuration__parameters", "samples"
    )
    single_values = {pk: (parameters, samples) for pk, parameters, samples in single_rows}
    cells = []
    for row in groups[:MOST_CELLS]:
        parameters, samples = single_values[row["one"]]
        values = {axis: row[axis] if name in COLUMNS else parameters.get(name) for axis, name in names.items()}
        cells.append(_cell(row, values, samples))
    return Pivot(cells, len(groups) > MOST_CELLS)


def _cell(row: Mapping[str, Any], values: Mapping[str, Any], samples: list[float]) -> PivotCell:
    single = row["configurations"] == 1
    return PivotCell(
        x=values["x"],
        colour=values.get("colour"),
        facet=values.get("facet"),
        configurations=row["configurations"],
        trials=row["trials"],
        median=row["middle"],
        low=row["low"],
        high=row["high"],
        dots=tuple(samples if single else row["some"]),
        pooled=None if single else (row["mean"], row["spread"]),
        published=row.get("experiment__published", False),
    )


def _configuration_cells(rows: QuerySet[Configuration], query: Query) -> Pivot:
    """Return one cell per configuration, newest first."""
    columns = {axis: F(COLUMNS[name]) for axis in ("x", "colour", "facet") if (name := getattr(query, axis)) in COLUMNS}
    ordered = rows.annotate(**{f"by_{axis}": column for axis, column in columns.items()}).order_by("-pk")
    fields = (f"summaries__{name}" for name in ("median", "minimum", "maximum", "samples"))
    of_experiment = ("experiment_id", "experiment__published")
    newest = ordered.values_list("pk", *of_experiment, "parameters", *fields, *(f"by_{axis}" for axis in columns))
    listed = list(newest[: MOST_CELLS + 1])
    follows = _FOLLOW.get(query.x, (query.x,))
    cells = []
    for pk, experiment, published, parameters, middle, low, high, samples, *by in listed[:MOST_CELLS]:
        axes = {axis: parameters.get(name) for axis in ("x", "colour", "facet") if (name := getattr(query, axis))}
        axes |= dict(zip(columns, by, strict=True))
        if axes["x"] is None:
            continue
        colour, same = axes.get("colour"), _same(parameters, query, axes.get("colour"))
        line = repr((experiment, sorted((k, v) for k, v in parameters.items() if k not in follows)))
        position, dots = (axes["x"], colour, axes.get("facet")), tuple(samples)
        cells.append(PivotCell(*position, 1, len(dots), middle, low, high, dots, None, line, pk, same, published))
    return Pivot(cells, len(listed) > MOST_CELLS)


def _same(parameters: Mapping[str, Any], query: Query, colour: Any) -> str:
    return repr((sorted((k, v) for k, v in parameters.items() if k != query.facet), colour))


_FOLLOW: Final = {"ranks": ("hosts", "ranks_per_host")}
"""Parameters that determine a column."""


def _scatter(rows: QuerySet[Configuration], query: Query) -> Pivot:
    """Return one dot per configuration, newest first: one metric against another."""
    by = {
        axis: F(COLUMNS[name]) if name in COLUMNS else KeyTransform(name, "parameters")
        for axis in ("colour", "facet")
        if (name := getattr(query, axis))
    }
    other = _summary(query.x, query.scope)
    both = rows.annotate(across=FilteredRelation("summaries", condition=other)).filter(across__isnull=False)
    own_summary = (f"summaries__{name}" for name in ("n", "median", "minimum", "maximum"))
    columns = ("pk", "parameters", "experiment__published", "across__median", *own_summary)
    ordered = both.annotate(**{f"by_{axis}": key for axis, key in by.items()}).order_by("-pk")
    dots = list(ordered.values_list(*columns, *(f"by_{axis}" for axis in by))[: MOST_DOTS + 1])
    cells = []
    for pk, parameters, published, x, n, middle, low, high, *values in dots[:MOST_DOTS]:
        axes = dict(zip(by, values, strict=True))
        colour, same = axes.get("colour"), _same(parameters, query, axes.get("colour"))
        position = (x, colour, axes.get("facet"))
        cells.append(PivotCell(*position, 1, n, middle, low, high, (middle,), None, "", pk, same, published))
    return Pivot(cells, len(dots) > MOST_DOTS, True)


@dataclass(frozen=True, slots=True)
class ConfigurationCounts:
    """The number of matching configurations, by workload and cluster (slug, name)."""

    total: int
    workloads: list[tuple[str, int]]
    clusters: list[tuple[str, str, int]]
    any_workload: list[tuple[str, int]]
    """As ``workloads``, without the choice of workloads."""


def counts(
    configurations: QuerySet[Configuration],
    designs: QuerySet[Experiment] | None = None,
    workloads: Collection[str] = (),
) -> ConfigurationCounts:
    """Count the configurations of ``workloads`` (empty: of all) in two queries.

    Design sizes are summed if ``designs`` is given.
    """
    rows: Iterable[tuple[str, int | None, int]]
    if designs is None:
        matching = configurations.order_by().values_list("experiment__workload", "experiment__cluster_id")
        rows = matching.annotate(count=Count("pk"))
    else:
        sizes = designs.filter(design_size__configurations__gt=0).order_by().values_list("workload", "cluster_id")
        rows = sizes.annotate(count=Sum("design_size__configurations"))
    names = {pk: (slug, name) for pk, slug, name in Cluster.objects.values_list("pk", "slug", "name")}
    by_workload: dict[str, int] = defaultdict(int)
    by_cluster: dict[tuple[str, str], int] = defaultdict(int)
    for workload, cluster, count in rows:
        by_workload[workload] += count
        if cluster and (not workloads or workload in workloads):
            by_cluster[names[cluster]] += count
    clusters = [(slug, name, count) for (slug, name), count in sorted(by_cluster.items())]
    every = sorted(by_workload.items())
    chosen = [(slug, count) for slug, count in every if not workloads or slug in workloads]
    return ConfigurationCounts(sum(count for _, count in chosen), chosen, clusters, every)


def flagged(configurations: QuerySet[Configuration], query: Query) -> int:
    """Count the trials whose traffic is excluded from the result."""
    if not any(is_traffic(name, query.scope) for name in (query.x, query.y)):
        return 0
    # One filter call: the conditions apply to the same trial.
    return configurations.filter(measured("trials__"), trials__trust__in=FLAGGED).count()


@dataclass(slots=True)
class TableRow:
    """A configuration with its summaries by metric (n, median, minimum, maximum)."""

    configuration: Configuration
    values: dict[str, tuple[int, float, float, float]] = field(default_factory=dict)


def table_rows(page: Sequence[Configuration], metrics: Sequence[str], scope: str) -> list[TableRow]:
    """Return table rows of configurations, in one query."""
    rows = {configuration.pk: TableRow(configuration) for configuration in page}
    summaries = Summary.objects.filter(configuration__in=list(rows), metric__in=metrics, scope=scope)
    listed = summaries.values_list("configuration_id", "metric", "n", "median", "minimum", "maximum")
    for key, metric, n, median, minimum, maximum in listed:
        budget.check()
        rows[key].values[metric] = (n, median, minimum, maximum)
    return list(rows.values())


def swept(rows: Iterable[Configuration]) -> list[str]:
    """Return the parameters that any of these experiments sweeps, ``hosts`` first."""
    names = {"hosts": None}
    for row in rows:
        names |= dict.fromkeys(row.experiment.specification.get("sweep") or {})
        if row.experiment.published:
            names |= dict.fromkeys(row.parameters)
    return list(names)
