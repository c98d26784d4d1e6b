"""What the explorer is asked, and the configurations that its filters leave."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.db.models.fields.json import KeyTransform

from experiments import workloads
from experiments.access import visible_experiments
from experiments.errors import CannotExplore
from experiments.metrics import is_metric
from experiments.models import Configuration, Experiment, Summary, Trial
from experiments.spec.parameters import CLUSTER_PARAMETERS, LINK_PARAMETERS, canonical

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


def check(query: Query) -> None:
    """Raise CannotExplore where a name could not be one."""
    for name in (query.x, query.y, query.colour, query.facet):
        if name and not _NAME.fullmatch(name):
            raise CannotExplore(f"{name[:80]!r} is not the name of a parameter or metric.")
    if not is_metric(query.y):
        raise CannotExplore(f"{query.y!r} is not a metric; the vertical axis needs one.")
    for name in (query.colour, query.facet):
        if name and is_metric(name):
            raise CannotExplore(f"{name} is a metric; colour and panels need a parameter.")


def configurations(user: Any, query: Query) -> QuerySet[Configuration]:
    """Return the configurations that ``user`` may see and the filters leave. Raise CannotExplore for a wrong condition."""
    matching = Configuration.objects.filter(in_design=True)
    experiments = _experiments(user, query)
    if experiments is not None:
        matching = matching.filter(experiment__in=experiments)
    trials = Trial.objects.filter(configuration=OuterRef("pk"), superseded=False)
    if query.states:
        matching = matching.filter(Exists(trials.filter(state__in=query.states)))
    if query.trusts:
        matching = matching.filter(Exists(trials.filter(trust__in=query.trusts)))
    if query.after or query.before:
        when = {"ended_at__gte": query.after, "ended_at__lt": query.before}
        matching = matching.filter(Exists(trials.filter(**{name: value for name, value in when.items() if value})))
    return conditions(matching, query)


def _experiments(user: Any, query: Query) -> QuerySet[Experiment] | None:
    """Return the experiments that ``user`` may see and the filters leave; None for every one there is."""
    matching = visible_experiments(user)
    for name, chosen in (
        ("workload", query.workloads),
        ("cluster__slug", query.clusters),
        ("project__slug", query.projects),
    ):
        if chosen:
            matching = matching.filter(**{f"{name}__in": chosen})
    for tag in query.tags:
        matching = matching.filter(tags__contains=[tag])
    if query.text:
        matching = matching.filter(
            Q(name__icontains=query.text) | Q(slug__icontains=query.text) | Q(tags__icontains=query.text)
        )
    return matching if matching.query.where else None


def conditions(matching: QuerySet[Configuration], query: Query) -> QuerySet[Configuration]:
    """Apply ``where``: comparisons separated by commas, such as ``hosts >= 4, link.delay = 2 ms, elapsed_s < 10``."""
    for number, text in enumerate(filter(None, map(str.strip, query.where.split(",")))):
        match = _CONDITION.fullmatch(text)
        if match is None or "__" in match[1]:
            raise CannotExplore(f"{text[:80]!r} is not a comparison; write for example: hosts >= 4, elapsed_s < 10.")
        name, sign, given = match.groups()
        lookup = _LOOKUPS[sign]
        if is_metric(name):
            there = Summary.objects.filter(configuration=OuterRef("pk"), metric=name, scope=query.scope)
            condition: Any = Exists(there.filter(**{f"median__{lookup}": _number(given, name)}))
        elif name in _WHOLE:
            whole = max(-_LARGEST_WHOLE, min(_LARGEST_WHOLE, _number(given, name)))
            condition = Q(**{f"{name}__{lookup}": whole})
        else:
            matching = matching.alias(**{f"given_{number}": KeyTransform(name, "parameters")})
            condition = Q(**{f"given_{number}__{lookup}": _value(name, given)})
        matching = matching.exclude(condition) if sign == "!=" else matching.filter(condition)
    return matching


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
