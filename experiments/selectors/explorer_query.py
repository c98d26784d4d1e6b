"""What the explorer is asked, and the configurations that its filters leave."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Exists, OuterRef, Q, QuerySet

from experiments.access import visible_experiments
from experiments.errors import CannotExplore
from experiments.metrics import is_metric
from experiments.models import Configuration, Experiment, Trial
from experiments.selectors.conditions import condition, read_conditions

_NAME: Final = re.compile(r"[A-Za-z][\w.\-]{0,79}")


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
    return matching.filter(condition(read_conditions(query.where), query.scope)) if query.where else matching


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
