"""Panels of a page: figures with titles and views, in sections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dashboard.charts.parts import Figure

_MOST_LINES: Final = 4
_SHORT: Final = 16


@dataclass(frozen=True)
class Chart:
    """A panel; `published` is None (no published values), True or False (on or off)."""

    element: str
    title: str
    figure: Figure
    published: bool | None = None
    left_out: int = 0
    """Series beyond the six that a chart can show."""
    subtitle: str = ""
    views: Sequence[tuple[str, Figure]] = ()
    """Other figures of the panel by the labels of their buttons; the first is `figure` itself."""
    parts: Sequence[tuple[str, str]] = ()
    """Metrics (id, label) of the third view, which has a caption of its own."""
    logarithm: bool = True
    log_first: bool = False
    """The initial axis is logarithmic."""
    metric: str = ""
    """Figure of a workload whose definition the title shows; "" for that of the title's words."""

    @property
    def is_named_at_length(self) -> bool:
        """Return whether names are so long that the legend gives each its own line."""
        names = [str(trace.get("name", "")) for trace in self.figure.get("data", ()) if trace.get("showlegend", True)]
        return len(names) > _MOST_LINES and max(map(len, names)) > _SHORT


@dataclass(frozen=True)
class Section:
    """A row of charts under one heading; `element` is its anchor."""

    element: str
    title: str
    charts: Sequence[Chart]

    @property
    def has_published(self) -> bool:
        return any(chart.published is not None for chart in self.charts)

    @property
    def is_wide(self) -> bool:
        """Two panels fill a row; otherwise three."""
        return len(self.charts) in (1, 2, 4)
