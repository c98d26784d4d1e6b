"""Result parts: panels for every experiment whose data they fit.

A part is a function of measurements that returns the context of its template, or None. A new part is one file and one
line here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from dashboard.panels.parts.curves import curves_part
from dashboard.panels.parts.effects import effects_part
from dashboard.panels.parts.energy import energy_part
from dashboard.panels.parts.envelope import envelope_part
from dashboard.panels.parts.grid import grid_part
from dashboard.panels.parts.inside_mpi import inside_mpi_part
from dashboard.panels.parts.ladder import ladder_part
from dashboard.panels.parts.measured import Measured
from dashboard.panels.parts.phases import phases_part
from dashboard.panels.parts.rating import rating_part
from dashboard.panels.parts.search import search_part

__all__ = ["SHORT_TITLES", "Measured", "Part", "parts_of"]

Build = Callable[[Measured, Mapping[str, str]], dict[str, Any] | None]


@dataclass(frozen=True, slots=True)
class Part:
    """One panel: anchor, title, template and its context."""

    element: str
    title: str
    template: str
    context: Mapping[str, Any]
    opens: bool
    """The part belongs beside the answer."""


_PARTS: Final[Sequence[tuple[str, str, str, Build]]] = (
    ("search", "Search and confirmation", "Search", search_part),
    ("inside-mpi", "Inside MPI: time of the ranks", "Inside MPI", inside_mpi_part),
    ("grid", "By two parameters", "By two parameters", grid_part),
    ("curves", "By message size", "By message size", curves_part),
    ("envelope", "Operating envelope", "Envelope", envelope_part),
    ("ladder", "Tuning ladder", "Ladder", ladder_part),
    ("effects", "Single and combined effects", "Effects", effects_part),
    ("energy", "Time and energy", "Time and energy", energy_part),
    ("rating", "Against peak, price and power", "Rating", rating_part),
    ("phases", "First and later steps, and more nodes", "Steps and nodes", phases_part),
)
SHORT_TITLES: Final[Mapping[str, str]] = {element: short for element, _, short, _ in _PARTS}
"""Parts by anchor, without its `part-`."""
_OPENS: Final[Mapping[str, str]] = {
    "network": "grid",
    "load and network": "envelope",
    "steps": "ladder",
    "message size": "curves",
    "scale and treatment": "phases",
    "best settings": "search",
}
"""The first part for the type of question."""


def parts_of(measured: Measured, targets: Mapping[str, str], question: str = "") -> list[Part]:
    """Return the parts that the data fit, in order. ``targets`` are the user's."""
    parts, first = [], _OPENS.get(question)
    for element, title, _, build in sorted(_PARTS, key=lambda part: part[0] != first):
        context = build(measured, targets)
        if context is not None:
            parts.append(Part(element, title, f"parts/_{element}.html", context, element == first))
    return parts
