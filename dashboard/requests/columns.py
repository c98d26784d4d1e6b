"""Columns of a list: those that a query string names, and headers that sort."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest


def names_in(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the columns named in ``columns=``, each once, in their order."""
    return tuple(dict.fromkeys(name.strip() for text in texts for name in text.split(",") if name.strip()))


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a list: ``titles`` in page order, and ``usual`` ones."""

    titles: Mapping[str, str]
    usual: tuple[str, ...]

    def names_of(self, request: HttpRequest) -> list[str]:
        """Return the named columns in the order of the page; by default the usual ones."""
        named = names_in(request.GET.getlist("columns"))
        return [name for name in self.titles if name in named] or list(self.usual)

    def of_page(self, request: HttpRequest) -> dict[str, Any]:
        """Return the template context: shown columns and all choices."""
        names = self.names_of(request)
        return {"columns": names, "offered": [(name, title, name in names) for name, title in self.titles.items()]}


@dataclass(frozen=True, slots=True)
class SortHeader:
    """The header of a sortable column; ``sort`` is the order after a click."""

    name: str
    title: str
    unit: str
    sort: str
    now: str
    """'ascending', 'descending' or '' for ``aria-sort``."""


def sort_header(name: str, title: str, sort: str, *, first: str = "", unit: str = "") -> SortHeader:
    """Return a header; ``first`` '-' makes the first click descending."""
    turned = {name: f"-{name}", f"-{name}": name}
    now = {name: "ascending", f"-{name}": "descending"}.get(sort, "")
    return SortHeader(name, title, unit, turned.get(sort, f"{first}{name}"), now)
