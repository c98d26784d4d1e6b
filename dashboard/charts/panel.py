"""A panel of a page: a figure with its title, its views and what is left out; sections are rows of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dashboard.charts.parts import Figure

_MOST_LINES: Final = 4
_SHORT: Final = 16


@dataclass(frozen=True)
class Chart:
    """A panel: `element` names it in the page, `published` is None (nothing to show), True or False (shown or not)."""

    element: str
    title: str
    figure: Figure
    published: bool | None = None
    left_out: int = 0
    """Series beyond the six that a chart can tell apart."""
    subtitle: str = ""
    views: Sequence[tuple[str, Figure]] = ()
    """Other figures of the same panel under the words of their buttons; the first is `figure` itself."""
    logarithm: bool = True
    log_first: bool = False
    """Whether the switch between linear and logarithmic stands at logarithmic to begin with."""

    @property
    def is_named_at_length(self) -> bool:
        """Whether its legend needs more lines than a panel has room for: long names have one each."""
        names = [str(trace.get("name", "")) for trace in self.figure.get("data", ()) if trace.get("showlegend", True)]
        return len(names) > _MOST_LINES and max(map(len, names)) > _SHORT


@dataclass(frozen=True)
class Section:
    """A row of charts under one heading; `element` is its anchor."""

    element: str
    title: str
    charts: Sequence[Chart]

    @property
    def is_wide(self) -> bool:
        """Whether two panels make a row, else three do."""
        return len(self.charts) in (1, 2, 4)
