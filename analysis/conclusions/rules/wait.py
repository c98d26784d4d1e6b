"""Rules about long waits, explained by the packets that ended them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from analysis.conclusions.observations.reading import Place, Reading
from analysis.conclusions.rules.registry import Finding, finding_at, rule
from analysis.conclusions.sentences.findings import late_sender
from analysis.conclusions.wording import percent

_WAITING: Final = 0.1
"""Least share of the ranks' time for a finding."""
_MOST: Final = 0.5
"""Least share of the waiting time of its cause."""
_LABELS: Final[Mapping[str, tuple[str, str]]] = {
    "late_senders": ("mpi_wait_late_sender_share", "Waits for a late sender"),
    "waits_on_full_links": ("mpi_wait_line_rate_share", "Waits at line rate"),
    "waits_for_lost_packets": ("mpi_wait_retransmission_share", "Waits for lost packets"),
    "waits_for_closed_windows": ("mpi_wait_closed_window_share", "Waits for a closed window"),
    "waits_without_core": ("mpi_wait_no_core_share", "Waits while descheduled"),
}
"""Metric of each cause and its label, by the name of the finding."""


@rule
def long_waits(reading: Reading) -> Iterator[Finding]:
    """Report the cause of most of the waiting, at the size with most of it."""
    for name, (metric, label) in _LABELS.items():
        place = _worst(reading, metric)
        if place is None:
            continue
        waiting = _waiting(place)
        words = {"waiting": percent(waiting), "part": percent(place.median), "who": _who(place)}
        yield finding_at(reading, name, place, metric, label, explains=waiting * place.median, **words)


def _who(place: Place) -> str:
    names = ("mpi_waiting_rank", "mpi_waited_for_rank")
    waiting, late = (place.same_rank(name) for name in names)
    share, part = (place.point.median(name) for name in ("mpi_waiting_rank_share", "mpi_waited_for_share"))
    if waiting is None or late is None or share is None or part is None or part < _MOST:
        return late_sender(_waiting(place), place.median)
    return late_sender(share, part, waiting, late)


def _worst(reading: Reading, metric: str) -> Place | None:
    places = [place for place in reading.series(metric) if _waiting(place) >= _WAITING and place.median >= _MOST]
    return max(places, key=lambda place: _waiting(place) * place.median, default=None)


def _waiting(place: Place) -> float:
    return place.point.median("mpi_wait_share") or 0.0
