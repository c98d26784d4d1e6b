"""Links from the points of the explorer to the list of exactly their trials.

The point of one configuration links to its trials. A pooled point links to the list of trials with the filters of the page and those
of its position, colour and panel. It has no link if the list cannot express these filters exactly.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from django.db.models import QuerySet
from django.urls import reverse
from django.utils.http import urlencode

from dashboard.filters import ConfigurationFilter
from experiments import workloads
from experiments.errors import CannotExplore
from experiments.models import Configuration, Measurement
from experiments.selectors.conditions import read_conditions
from experiments.selectors.explorer import Pivot, PivotCell, Query
from experiments.specification.grammar import MAX_LENGTH
from experiments.specification.tree import Comparison, Constant, Name

_ONE_OF: Final = ("experiment", "workload", "cluster", "project")
"""Filters with several values here and one in the list of trials."""
_OF_SOME_TRIAL: Final = ("tag", "state", "trust", "after", "before")
"""Filters that the list of trials lacks or defines differently."""
_NAMED: Final = {name: f"experiment__{name}" for name in ("cluster", "project")}
"""Dimensions with names as values, whose filters need slugs."""


@dataclass(frozen=True, slots=True)
class Leads:
    """Links of points: ``address`` with ``*`` in place of ``suffix``; or none."""

    address: str = ""
    suffix: Callable[[PivotCell], str] = lambda cell: ""


def leads(configurations: QuerySet[Configuration], filters: ConfigurationFilter, query: Query, pivoted: Pivot) -> Leads:
    """Return the links of the cells of an answer."""
    counted = {"counted": query.y} | ({} if query.scope == Measurement.Scope.ALL else {"scope": query.scope})
    if pivoted.is_scatter or not query.pooled:
        address = reverse("configuration-trials", args=[0]).replace("/0/", "/*/")
        return Leads(f"{address}?{urlencode(counted)}", lambda cell: str(cell.configuration))
    dimensions = {axis: name for axis in ("facet", "colour", "x") if (name := getattr(query, axis))}
    page_filters = _page_filters(filters.form.cleaned_data, set(dimensions.values()))
    if page_filters is None or len({cell.published for cell in pivoted.cells}) != 1:
        return Leads()  # the list of trials has no filter of published ones
    where = str(filters.data.get("where", "")).strip()
    condition = lru_cache(maxsize=None, typed=True)(condition_of)
    slugs = _slugs(configurations, set(dimensions.values()))
    cells = [(axis, getattr(cell, axis)) for axis in dimensions for cell in pivoted.cells]
    truths = {axis for axis, value in cells if isinstance(value, bool)}
    mixed = truths & {axis for axis, value in cells if _is_truth(value) and not isinstance(value, bool)}

    def suffix(cell: PivotCell) -> str:
        """Return the filters of one cell; empty if they cannot be stated exactly."""
        names: dict[str, str] = {}
        conditions = [where] if where else []
        for axis, name in dimensions.items():
            value = getattr(cell, axis)
            if not isinstance(value, str | int | float) or (axis in mixed and _is_truth(value)):
                return ""
            if name in _ONE_OF:
                names[name] = str(value) if name == "experiment" else slugs.get((name, str(value)), "")
            else:
                conditions.append(condition(name, value) or "")
        stated = ", ".join(conditions)
        if not all((*names.values(), *conditions)) or len(stated) > MAX_LENGTH:
            return ""
        condition_filter = {"where": stated} if stated else {}
        # The filter of the x axis comes last: points of one series then differ in the end of their addresses only.
        return urlencode(condition_filter | names if dimensions["x"] in names else names | condition_filter)

    return Leads(f"{reverse('trials')}?{urlencode(counted | page_filters)}&*", suffix)


def _is_truth(value: Any) -> bool:
    """Return whether conditions take a value for true or false, as 1 and 0."""
    return isinstance(value, int) and value in (0, 1)


def _page_filters(values: Mapping[str, Any], dimensions: set[str]) -> dict[str, str] | None:
    """Return the page's filters for the list of trials; None if impossible."""
    if any(values[name] for name in _OF_SOME_TRIAL):
        return None
    filters = {"q": values["text"]} if values["text"] else {}
    for name in _ONE_OF:
        if name in dimensions or not values[name]:
            continue  # each cell has one value of its dimensions, which the filter allows
        if len(values[name]) > 1 or (name == "workload" and workloads.find(values[name][0]) is None):
            return None
        filters[name] = values[name][0]
    return filters


def _slugs(configurations: QuerySet[Configuration], dimensions: set[str]) -> dict[tuple[str, str], str]:
    """Return (dimension, name) -> slug for names that exactly one matching object has."""
    slugs: dict[tuple[str, str], str] = {}
    for dimension in dimensions & set(_NAMED):
        path = _NAMED[dimension]
        pairs = set(configurations.order_by().values_list(f"{path}__name", f"{path}__slug").distinct())
        counts = Counter(name for name, _ in pairs)
        slugs |= {(dimension, name): slug for name, slug in pairs if counts[name] == 1 and slug}
    if "workload" in dimensions:
        slugs |= {("workload", workload.slug): workload.slug for workload in workloads.registry()}
    return slugs


def condition_of(name: str, value: Any) -> str | None:
    """Return the condition ``name = value``; None if it is ambiguous."""
    if isinstance(value, bool):
        literal = str(value).lower()
    elif isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        literal = repr(value)
    elif isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        literal = f'"{escaped}"'
    else:
        return None
    text = f"{name} = {literal}"
    try:
        tree = read_conditions(text).tree
    except CannotExplore:
        return None
    return text if tree == Comparison(Name(name), (("==", Constant(value)),)) else None
