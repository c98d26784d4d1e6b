"""Heads of columns that a list is sorted by: what a click on one asks for."""

from __future__ import annotations

from dataclasses import dataclass


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
