"""Columns of a list: those that a query string names, and headers that sort."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest


def names_in(texts: Sequence[str]) -> tuple[str, ...]:
    """The columns that the values of ``columns=`` name, in their order and each once."""
    return tuple(dict.fromkeys(name.strip() for text in texts for name in text.split(",") if name.strip()))


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a list beside its names: ``titles`` of all of them in the order of the page, and which it has by itself."""

    titles: Mapping[str, str]
    usual: tuple[str, ...]

    def asked(self, request: HttpRequest) -> list[str]:
        """The columns that the address asks for, in the order of the page; the usual ones where it names none of them."""
        named = names_in(request.GET.getlist("columns"))
        return [name for name in self.titles if name in named] or list(self.usual)

    def of_page(self, request: HttpRequest) -> dict[str, Any]:
        """What the templates of a list need: the columns shown, and all that can be ticked."""
        shown = self.asked(request)
        return {"columns": shown, "offered": [(name, title, name in shown) for name, title in self.titles.items()]}


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a column that the list can be sorted by; ``sort`` is what a click asks for."""

    name: str
    title: str
    unit: str
    sort: str
    now: str
    """'ascending', 'descending' or '' for ``aria-sort``."""


def head(name: str, title: str, sort: str, *, first: str = "", unit: str = "") -> Head:
    """Return a head under the present ``sort``: a click on the sorted one turns it round; ``first`` '-' sorts down at a first click."""
    turned = {name: f"-{name}", f"-{name}": name}
    now = {name: "ascending", f"-{name}": "descending"}.get(sort, "")
    return Head(name, title, unit, turned.get(sort, f"{first}{name}"), now)
