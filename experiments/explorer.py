"""The repository as a pivot: any metric over any parameter or metric, by colour and panel, over whatever the filters leave.

The unit is the configuration: its counted trials stand in ``Summary``. A cell that pools several configurations counts each of
them once, by its median, since trials of one configuration are no independent answers to another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Any, Final

from django.contrib.postgres.fields import ArrayField
from django.db.models import (
    Aggregate,
    Avg,
    Count,
    Exists,
    F,
    FloatField,
    Max,
    Min,
    OuterRef,
    Q,
    QuerySet,
    StdDev,
    Sum,
)
from django.db.models.fields.json import KeyTransform
from scipy import stats

from experiments import workloads
from experiments.access import visible_experiments
from experiments.errors import CannotExplore
from experiments.metrics import find
from experiments.models import Configuration, Summary, Trial
from experiments.parameters import CLUSTER_PARAMETERS, LINK_PARAMETERS, canonical

MOST_CELLS: Final = 1500
MOST_DOTS: Final = 2000
COLUMNS: Final = {
    "hosts": "configuration__hosts",
    "ranks": "configuration__ranks",
    "workload": "configuration__experiment__workload",
    "experiment": "configuration__experiment__name",
    "cluster": "configuration__experiment__cluster__name",
    "project": "configuration__experiment__project__name",
}
"""Dimensions that are columns of tables; every other one is a parameter."""
_NAME: Final = re.compile(r"[A-Za-z][\w.\-]{0,79}")
_CONDITION: Final = re.compile(r"\s*([A-Za-z][\w.\-]{0,79})\s*(<=|>=|!=|=|<|>)\s*(\S(?:.*\S)?)\s*")
_LOOKUPS: Final = {"=": "exact", "!=": "exact", "<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}
_WHOLE: Final = frozenset({"hosts", "ranks"})
_LARGEST_WHOLE: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked. Empty means: no filter, no colour, no panels."""

    y: str = "elapsed_s"
    x: str = "hosts"
    colour: str = ""
    facet: str = ""
    scope: str = "all"
    text: str = ""
    where: str = ""
    workloads: tuple[str, ...] = ()
    clusters: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    trusts: tuple[str, ...] = ()
    after: Any = None
    before: Any = None


@dataclass(frozen=True, slots=True)
class Cell:
    """One point of the pivot: where it lies, and the metric over its configurations."""

    x: Any
    colour: Any
    facet: Any
    configurations: int
    trials: int
    median: float
    low: float
    """Smallest and largest value of any trial."""
    high: float
    mean: float
    interval: tuple[float, float] | None
    """95 % t interval of the mean: over the trials of a single configuration, else over the configurations' medians."""
    dots: tuple[float, ...]
    """The trials of a single configuration, else the medians of (up to 50) configurations."""


@dataclass(frozen=True, slots=True)
class Pivot:
    """``cut`` tells that there are more cells (or dots) than are given."""

    cells: list[Cell]
    cut: bool
    is_scatter: bool = False


class Some(Aggregate):
    """Up to 50 of the values, for dots."""

    template = "(array_agg(%(expressions)s))[1:50]"
    output_field = ArrayField(FloatField())


class Median(Aggregate):
    """The continuous median of PostgreSQL."""

    function = "percentile_cont"
    template = "%(function)s(0.5) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = FloatField()


def is_metric(name: str) -> bool:
    """Return whether ``name`` is a metric or figure of merit, not a parameter."""
    try:
        find(name)
    except KeyError:
        return False
    return True


def check(query: Query) -> None:
    """Raise CannotExplore where a name could not be one."""
    for name in (query.x, query.y, query.colour, query.facet):
        if name and not _NAME.fullmatch(name):
            raise CannotExplore(f"{name[:80]!r} is no name of a parameter or metric.")
    if not is_metric(query.y):
        raise CannotExplore(f"{query.y!r} is no metric; the vertical axis needs one.")
    for name in (query.colour, query.facet):
        if name and is_metric(name):
            raise CannotExplore(f"{name} is a metric; colour and panels need a parameter.")


def configurations(user: Any, query: Query) -> QuerySet[Configuration]:
    """Return the configurations that ``user`` may see and the filters leave. Raise CannotExplore for a wrong condition."""
    experiments = visible_experiments(user)
    for name, chosen in (
        ("workload", query.workloads),
        ("cluster__slug", query.clusters),
        ("project__slug", query.projects),
    ):
        if chosen:
            experiments = experiments.filter(**{f"{name}__in": chosen})
    for tag in query.tags:
        experiments = experiments.filter(tags__contains=[tag])
    if query.text:
        words = Q(name__icontains=query.text) | Q(slug__icontains=query.text) | Q(tags__icontains=query.text)
        experiments = experiments.filter(words)
    found = Configuration.objects.filter(in_design=True, experiment__in=experiments)
    trials = Trial.objects.filter(configuration=OuterRef("pk"), superseded=False)
    if query.states:
        found = found.filter(Exists(trials.filter(state__in=query.states)))
    if query.trusts:
        found = found.filter(Exists(trials.filter(trust__in=query.trusts)))
    if query.after or query.before:
        when = {"ended_at__gte": query.after, "ended_at__lt": query.before}
        found = found.filter(Exists(trials.filter(**{name: value for name, value in when.items() if value})))
    return conditions(found, query)


def conditions(found: QuerySet[Configuration], query: Query) -> QuerySet[Configuration]:
    """Apply ``where``: comparisons parted by commas, such as ``hosts >= 4, link.delay = 2 ms, elapsed_s < 10``."""
    for number, text in enumerate(filter(None, map(str.strip, query.where.split(",")))):
        match = _CONDITION.fullmatch(text)
        if match is None or "__" in match[1]:
            raise CannotExplore(f"{text[:80]!r} is no comparison; write for example: hosts >= 4, elapsed_s < 10.")
        name, sign, given = match.groups()
        lookup = _LOOKUPS[sign]
        if is_metric(name):
            there = Summary.objects.filter(configuration=OuterRef("pk"), metric=name, scope=query.scope)
            condition: Any = Exists(there.filter(**{f"median__{lookup}": _number(given, name)}))
        elif name in _WHOLE:
            whole = max(-_LARGEST_WHOLE, min(_LARGEST_WHOLE, _number(given, name)))
            condition = Q(**{f"{name}__{lookup}": whole})
        else:
            found = found.alias(**{f"given_{number}": KeyTransform(name, "parameters")})
            condition = Q(**{f"given_{number}__{lookup}": _value(name, given)})
        found = found.exclude(condition) if sign == "!=" else found.filter(condition)
    return found


def _number(text: str, name: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise CannotExplore(f"{name} is compared with a number, not with {text[:40]!r}.") from None
    if value != value or value in (float("inf"), float("-inf")):
        raise CannotExplore(f"{name} is compared with a finite number.")
    return value


def _value(name: str, text: str) -> Any:
    """A parameter's value as it is stored: quantities in base units, numbers as numbers, else text."""
    if name in LINK_PARAMETERS or name in CLUSTER_PARAMETERS:
        try:
            return canonical(workloads.registry()[0].slug, name, text)
        except ValueError as error:
            raise CannotExplore(f"{name}: {error}") from None
    try:
        value = float(text)
    except ValueError:
        return text
    return text if value != value or value in (float("inf"), float("-inf")) else value


def pivot(user: Any, query: Query) -> Pivot:
    """Return the cells of a query, in two database queries. Raise CannotExplore."""
    check(query)
    rows = Summary.objects.filter(metric=query.y, scope=query.scope)
    if filtered(query) or not user.is_superuser:
        rows = rows.filter(configuration__in=configurations(user, query))
    else:  # without a filter, the subquery would only repeat the table
        rows = rows.filter(configuration__in_design=True)
    return _scatter(rows, query) if is_metric(query.x) else _cells(rows, query)


def filtered(query: Query) -> bool:
    """Return whether any filter is set."""
    return bool(
        query.text
        or query.where
        or query.workloads
        or query.clusters
        or query.projects
        or query.tags
        or query.states
        or query.trusts
        or query.after
        or query.before
    )


def _dimension(name: str) -> Any:
    return F(COLUMNS[name]) if name in COLUMNS else KeyTransform(name, "configuration__parameters")


def _dimensions(query: Query, names: Iterable[str]) -> dict[str, Any]:
    return {f"by_{each}": _dimension(getattr(query, each)) for each in names if getattr(query, each)}


def _cells(rows: QuerySet[Summary], query: Query) -> Pivot:
    by = _dimensions(query, ("x", "colour", "facet"))
    grouped = (
        rows.annotate(**by)
        .order_by()
        .values(*by)
        .annotate(
            configurations=Count("pk"),
            trials=Sum("n"),
            middle=Median("median"),
            low=Min("minimum"),
            high=Max("maximum"),
            mean=Avg("median"),
            spread=StdDev("median", sample=True),
            only=Max("configuration_id"),
            some=Some("median"),
        )
        .exclude(by_x=None)[: MOST_CELLS + 1]
    )
    found = list(grouped)
    alone = [row["only"] for row in found if row["configurations"] == 1]
    samples: Mapping[int, list[float]] = dict(
        rows.model.objects.filter(configuration__in=alone, metric=query.y, scope=query.scope).values_list(
            "configuration_id", "samples"
        )
    )
    return Pivot([_cell(row, samples) for row in found[:MOST_CELLS]], len(found) > MOST_CELLS)


def _cell(row: Mapping[str, Any], samples: Mapping[int, list[float]]) -> Cell:
    single = row["configurations"] == 1
    dots = samples.get(row["only"], []) if single else row["some"]
    mean, spread, n = row["mean"], row["spread"], row["configurations"]
    if single and dots:
        mean, spread, n = fmean(dots), stdev(dots) if len(dots) > 1 else None, len(dots)
    half = None if spread is None or n < 2 else float(stats.t.ppf(0.975, n - 1)) * spread / n**0.5
    return Cell(
        x=row["by_x"],
        colour=row.get("by_colour"),
        facet=row.get("by_facet"),
        configurations=row["configurations"],
        trials=row["trials"],
        median=row["middle"],
        low=row["low"],
        high=row["high"],
        mean=mean,
        interval=None if half is None else (mean - half, mean + half),
        dots=tuple(dots),
    )


def _scatter(rows: QuerySet[Summary], query: Query) -> Pivot:
    """One metric against another: one dot per configuration, the newest ones first."""
    by = _dimensions(query, ("colour", "facet"))
    ys = list(
        rows.annotate(**by)
        .order_by("-configuration_id")
        .values("configuration_id", "n", "median", "minimum", "maximum", *by)[: MOST_DOTS + 1]
    )
    keys = [row["configuration_id"] for row in ys[:MOST_DOTS]]
    xs = dict(
        Summary.objects.filter(configuration__in=keys, metric=query.x, scope=query.scope).values_list(
            "configuration_id", "median"
        )
    )
    cells = [
        Cell(
            x=xs[row["configuration_id"]],
            colour=row.get("by_colour"),
            facet=row.get("by_facet"),
            configurations=1,
            trials=row["n"],
            median=row["median"],
            low=row["minimum"],
            high=row["maximum"],
            mean=row["median"],
            interval=None,
            dots=(row["median"],),
        )
        for row in ys[:MOST_DOTS]
        if row["configuration_id"] in xs
    ]
    return Pivot(cells, len(ys) > MOST_DOTS, True)


@dataclass(frozen=True, slots=True)
class Counts:
    """How many configurations match, by workload and by cluster (slug, name)."""

    total: int
    workloads: list[tuple[str, int]]
    clusters: list[tuple[str, str, int]]


def counts(user: Any, query: Query) -> Counts:
    """Count what the filters leave, in one query."""
    rows = (
        configurations(user, query)
        .order_by()
        .values_list("experiment__workload", "experiment__cluster__slug", "experiment__cluster__name")
        .annotate(count=Count("pk"))
    )
    by_workload: dict[str, int] = {}
    by_cluster: dict[tuple[str, str], int] = {}
    for workload, slug, name, count in rows:
        by_workload[workload] = by_workload.get(workload, 0) + count
        if slug:
            by_cluster[slug, name] = by_cluster.get((slug, name), 0) + count
    clusters = [(slug, name, count) for (slug, name), count in sorted(by_cluster.items())]
    return Counts(sum(by_workload.values()), sorted(by_workload.items()), clusters)


@dataclass(slots=True)
class Line:
    """A row of the table: a configuration with its summaries by metric (n, median, minimum, maximum)."""

    configuration: Configuration
    values: dict[str, tuple[int, float, float, float]] = field(default_factory=dict)


def lines(rows: Sequence[Configuration], metrics: Sequence[str], scope: str) -> list[Line]:
    """Return the table's rows for configurations, in one query."""
    found = {row.pk: Line(row) for row in rows}
    summaries = Summary.objects.filter(configuration__in=list(found), metric__in=metrics, scope=scope)
    asked = summaries.values_list("configuration_id", "metric", "n", "median", "minimum", "maximum")
    for key, metric, n, median, minimum, maximum in asked:
        found[key].values[metric] = (n, median, minimum, maximum)
    return list(found.values())


def swept(rows: Iterable[Configuration]) -> list[str]:
    """Return every parameter that an experiment among these sweeps, ``hosts`` first: none may hide in a table."""
    names = {"hosts": None}
    for row in rows:
        names |= dict.fromkeys(row.experiment.specification.get("sweep") or {})
        if row.experiment.published:
            names |= dict.fromkeys(row.parameters)
    return list(names)
