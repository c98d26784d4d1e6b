"""Rules about long waits, explained by the packets that ended them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from analysis.catalogue import METRICS
from analysis.conclusions.observations.reading import Reading, SizeEntry
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
        entry = _worst(reading, metric)
        if entry is None:
            continue
        waiting = _waiting(entry)
        words = {"waiting": percent(waiting), "part": percent(entry.median), "who": _who(entry)}
        yield finding_at(reading, name, entry, metric, label, explains=waiting * entry.median, **words)


@rule
def mpi_waits(reading: Reading) -> Iterator[Finding]:
    """Report ranks that mostly wait in MPI, if no cause was measured."""
    metric = "mpi_blocked_share"
    worst = reading.highest(metric)
    if worst is None or worst.point.disturbed or any(_worst(reading, metric) for metric, _ in _LABELS.values()):
        return
    if reading.series("mpi_serialisation_efficiency"):
        return
    share = worst.median - (worst.point.median("mpi_descheduled_inside_share") or 0.0)
    if share >= _MOST:
        words = {"share": percent(share)}
        yield finding_at(reading, "mpi_waits", worst, metric, METRICS[metric].label, explains=share, **words)


def _who(entry: SizeEntry) -> str:
    names = ("mpi_waiting_rank", "mpi_waited_for_rank")
    waiting, late = (entry.same_rank(name) for name in names)
    share, part = (entry.point.median(name) for name in ("mpi_waiting_rank_share", "mpi_waited_for_share"))
    if waiting is None or late is None or share is None or part is None or part < _MOST:
        return late_sender(_waiting(entry), entry.median)
    return late_sender(share, part, waiting, late)


def _worst(reading: Reading, metric: str) -> SizeEntry | None:
    places = [entry for entry in reading.series(metric) if _waiting(entry) >= _WAITING and entry.median >= _MOST]
    return max(places, key=lambda entry: _waiting(entry) * entry.median, default=None)


def _waiting(entry: SizeEntry) -> float:
    return entry.point.median("mpi_wait_share") or 0.0
