"""Search of the site by names of what the user may read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from django.contrib.auth import get_user_model
from django.db.models import Q, QuerySet
from django.urls import reverse

from dashboard.filters.base import with_text
from experiments import workloads
from experiments.access import may_see_people, visible_clusters, visible_experiments, visible_projects, visible_reports

MOST_ROWS: Final = 8
"""Of each group; lists with a search of their own show all."""
MOST_CHARACTERS: Final = 200


@dataclass(frozen=True, slots=True)
class NamedThing:
    """One result: name, URL, and a few words on it."""

    name: str
    address: str
    words: str = ""


@dataclass(frozen=True, slots=True)
class ResultGroup:
    """Results of one kind; ``address`` lists all of them."""

    title: str
    rows: list[NamedThing]
    has_more: bool
    address: str


def search_site(user: Any, text: str) -> list[ResultGroup]:
    """Return what the user may read with a text in its name, by kind."""
    text = text.strip()[:MOST_CHARACTERS]
    if not text or getattr(user, "is_visitor", False):
        return []
    groups = (
        _group("Experiments", _experiments(user, text), "experiments", text),
        _group("Clusters", _clusters(user, text), "clusters"),
        _group("Workloads", _workloads(text), "workloads"),
        _group("Projects", _projects(user, text), "projects"),
        _group("Reports", _reports(user, text), "reports"),
        _group("Users", _users(text) if may_see_people(user) else (), "people", text),
    )
    return [group for group in groups if group.rows]


def _group(title: str, things: Iterable[NamedThing], page: str, text: str = "") -> ResultGroup:
    rows = list(things)
    address = reverse(page) + (f"?{urlencode({'q': text})}" if text else "")
    return ResultGroup(title, rows[:MOST_ROWS], len(rows) > MOST_ROWS, address)


def _first(rows: QuerySet[Any]) -> QuerySet[Any]:
    return rows[: MOST_ROWS + 1]


def _experiments(user: Any, text: str) -> Iterator[NamedThing]:
    for row in _first(with_text(visible_experiments(user), "text", text).order_by("-created_at", "-pk")):
        yield NamedThing(row.name, row.get_absolute_url(), row.slug)


def _clusters(user: Any, text: str) -> Iterator[NamedThing]:
    for row in _first(visible_clusters(user).filter(_named(text)).order_by("name", "slug")):
        yield NamedThing(row.name, reverse("cluster", args=[row.slug]), row.slug)


def _workloads(text: str) -> Iterator[NamedThing]:
    for row in workloads.registry():
        if text.casefold() in f"{row.slug}\n{row.title}".casefold():
            yield NamedThing(row.title, reverse("workload", args=[row.slug]), row.slug)


def _projects(user: Any, text: str) -> Iterator[NamedThing]:
    for row in _first(visible_projects(user).filter(_named(text)).order_by("name", "slug")):
        yield NamedThing(row.name, reverse("project", args=[row.slug]), row.slug)


def _reports(user: Any, text: str) -> Iterator[NamedThing]:
    for row in _first(visible_reports(user).filter(title__icontains=text).order_by("-pk")):
        yield NamedThing(row.title, row.get_absolute_url())


def _users(text: str) -> Iterator[NamedThing]:
    accounts = get_user_model()._default_manager
    for row in _first(accounts.filter(Q(username__icontains=text) | Q(email__icontains=text)).order_by("username")):
        yield NamedThing(row.get_username(), reverse("person", args=[row.pk]), row.email)


def _named(text: str) -> Q:
    return Q(name__icontains=text) | Q(slug__icontains=text)
