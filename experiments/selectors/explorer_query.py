"""What the explorer is asked to lay over what."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from experiments.errors import CannotExplore
from experiments.metrics import is_metric

_NAME: Final = re.compile(r"[A-Za-z][\w.\-]{0,79}")


@dataclass(frozen=True, slots=True)
class Query:
    """A metric over a parameter or another metric. Empty means: no colour, no panels."""

    y: str = "elapsed_s"
    x: str = "hosts"
    colour: str = ""
    facet: str = ""
    scope: str = "all"
    pooled: bool = True
    """Whether configurations of one place and colour make one cell, however they differ otherwise."""


def check(query: Query) -> None:
    """Raise CannotExplore where a name could not be one."""
    for field in ("x", "y", "colour", "facet"):
        name = getattr(query, field)
        if name and not _NAME.fullmatch(name):
            raise CannotExplore(f"{name[:80]!r} is not the name of a parameter or metric.", field=field)
    if not is_metric(query.y):
        raise CannotExplore(f"{query.y!r} is not a metric; the vertical axis needs one.", field="y")
    for field in ("colour", "facet"):
        if (name := getattr(query, field)) and is_metric(name):
            raise CannotExplore(f"{name} is a metric; colour and panels need a parameter.", field=field)
