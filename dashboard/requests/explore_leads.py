"""Where the points of the explorer lead: to the list of exactly the trials that each is made of.

A point that is a configuration leads to its trials. One that pools configurations leads to what the filters of the page and its own
place, colour and panel leave, said in the filters of the list of trials. Where they cannot say it exactly, the point leads nowhere.
"""

from __future__ import annotations

import math
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
from experiments.selectors.explorer import Cell, Pivot, Query
from experiments.specification.grammar import MAX_LENGTH
from experiments.specification.tree import Comparison, Constant, Logic, Name, Node

_ONE_OF: Final = ("experiment", "workload", "cluster", "project")
"""Filters that take several values here and one in the list of trials; they are dimensions too."""
_OF_SOME_TRIAL: Final = ("tag", "state", "trust", "after", "before")
"""Filters that the list of trials does not have, or that mean something else there: here one trial of a configuration is enough."""
_NAMED: Final = {name: f"experiment__{name}" for name in ("cluster", "project")} | {"experiment": "experiment"}
"""Dimensions whose values are names, while filters take slugs."""


@dataclass(frozen=True, slots=True)
class Leads:
    """``address`` has a ``*`` for what ``own`` says of a cell; both are empty where nothing can be led to."""

    address: str = ""
    own: Callable[[Cell], str] = lambda cell: ""


def leads(configurations: QuerySet[Configuration], filters: ConfigurationFilter, query: Query, pivoted: Pivot) -> Leads:
    """Return where the cells of an answer lead. Asks the database where cells are pooled by names of experiments or clusters."""
    counted = {"counted": query.y} | ({} if query.scope == Measurement.Scope.ALL else {"scope": query.scope})
    if pivoted.is_scatter or not query.pooled:
        address = reverse("configuration-trials", args=[0]).replace("/0/", "/*/")
        return Leads(f"{address}?{urlencode(counted)}", lambda cell: str(cell.configuration))
    names = {each: name for each in ("facet", "colour", "x") if (name := getattr(query, each))}
    said = _said_of_page(filters.form.cleaned_data, set(names.values()))
    if said is None or not pivoted.cells:
        return Leads()
    where = str(filters.data.get("where", "")).strip()
    if where and not _takes_more(where):
        return Leads()
    say = lru_cache(maxsize=None, typed=True)(condition_of)
    point = _Point(names, where, _slugs(configurations, set(names.values())), _ambiguous(names, pivoted), say)
    address = f"{reverse('trials')}?{urlencode(counted | said)}&"
    return Leads(f"{address}*", point.address)


def _said_of_page(asked: Mapping[str, Any], dimensions: set[str]) -> dict[str, str] | None:
    """The filters of the page as the list of trials takes them, but for conditions; None where it cannot."""
    if any(asked[name] for name in _OF_SOME_TRIAL):
        return None
    said = {"q": asked["text"]} if asked["text"] else {}
    for name in _ONE_OF:
        if name in dimensions or not asked[name]:
            continue  # every cell has one value of its dimensions, which the filter lets through
        if len(asked[name]) > 1 or (name == "workload" and workloads.find(asked[name][0]) is None):
            return None
        said[name] = asked[name][0]
    return said


def _slugs(configurations: QuerySet[Configuration], dimensions: set[str]) -> dict[tuple[str, str], str]:
    """(dimension, name) -> slug, of names that only one of those that match has."""
    slugs: dict[tuple[str, str], str] = {}
    for dimension in dimensions & set(_NAMED):
        path = _NAMED[dimension]
        found = configurations.order_by().values_list(f"{path}__name", f"{path}__slug").distinct()
        by_name: dict[str, list[str]] = {}
        for name, slug in found:
            by_name.setdefault(name, []).append(slug)
        slugs |= {(dimension, name): own[0] for name, own in by_name.items() if len(own) == 1 and own[0]}
    return slugs


def _ambiguous(names: Mapping[str, str], pivoted: Pivot) -> set[tuple[str, Any]]:
    """Values of dimensions that are true in one cell and 1 in another: conditions take them for the same."""
    kinds: dict[tuple[str, Any], set[bool]] = {}
    for cell in pivoted.cells:
        for each in names:
            value = getattr(cell, each)
            if isinstance(value, int | float) and value in (0, 1):
                kinds.setdefault((each, value), set()).add(isinstance(value, bool))
    return {place for place, kind in kinds.items() if len(kind) > 1}


@dataclass(frozen=True, slots=True)
class _Point:
    """Says where a pooled cell leads. ``names`` are its dimensions: facet, colour and x."""

    names: Mapping[str, str]
    where: str
    slugs: Mapping[tuple[str, str], str]
    ambiguous: set[tuple[str, Any]]
    say: Callable[[str, Any], str | None]

    def address(self, cell: Cell) -> str:
        """Return the part of the address that is the cell's own; empty where it cannot be said exactly."""
        filters: dict[str, str] = {}
        conditions = [self.where] if self.where else []
        for each, name in self.names.items():
            value = getattr(cell, each)
            if not isinstance(value, bool | int | float | str) or (each, value) in self.ambiguous:
                return ""
            said = self._slug(name, value) if name in _ONE_OF else self.say(name, value)
            if not said:
                return ""
            if name in _ONE_OF:
                filters[name] = said
            else:
                conditions.append(said)
        where = ", ".join(conditions)
        if len(where) > MAX_LENGTH:
            return ""
        spoken = {"where": where} if where else {}
        # What lies across comes last: points of one series then differ in the end of their addresses alone.
        return urlencode(spoken | filters if self.names["x"] in filters else filters | spoken)

    def _slug(self, name: str, value: Any) -> str:
        if name == "workload":
            return str(value) if workloads.find(str(value)) is not None else ""
        return self.slugs.get((name, value), "")


def condition_of(name: str, value: Any) -> str | None:
    """Return ``name = value`` in the language of conditions; None where that would mean anything else."""
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
    return text if _tree(text) == Comparison(Name(name), (("==", Constant(value)),)) else None


def _takes_more(where: str) -> bool:
    """Return whether a further condition behind these means: these, and that one."""
    alone, both, further = _tree(where), _tree(f"{where}, hosts = 1"), _tree("hosts = 1")
    if not isinstance(both, Logic) or alone is None:
        return False
    first = alone.operands if isinstance(alone, Logic) and alone.word == "and" else (alone,)
    return both.word == "and" and both.operands in ((*first, further), (alone, further))


def _tree(text: str) -> Node | None:
    try:
        return read_conditions(text).tree
    except CannotExplore:
        return None
