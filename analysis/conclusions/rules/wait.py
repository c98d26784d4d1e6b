"""Rules about long waits, explained by the packets that ended them: for whom, and what the network did meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from analysis.conclusions.observations.reading import Place, Reading
from analysis.conclusions.rules.registry import Evidence, Finding, Group, rule
from analysis.conclusions.wording import percent
from analysis.numbers import grouped

_WAITING: Final = 0.1
"""Of the ranks' time: less is not worth a sentence."""
_MOST: Final = 0.5
"""Of the waiting time: a cause of less is not the cause."""
_CHART: Final = "inside-mpi"
_BY_PAIR: Final = "The page of each trial shows it for every pair of ranks."


@rule
def late_senders(reading: Reading) -> Iterator[Finding]:
    """Ranks that wait for data which others have not sent yet."""
    place = _worst(reading, "mpi_wait_late_sender_share")
    if place is None:
        return
    waiting = _waiting(place)
    yield Finding(
        "late_senders",
        "time",
        f"{_who(place)}{reading.at(place.point)}.",
        reading.strength(doubtful=not reading.study.may_claim(place.point, metric="mpi_wait_late_sender_share")),
        _evidence(reading, "Waits for a late sender", "mpi_wait_late_sender_share"),
        _CHART,
        f"Let the sender send earlier or the receiver ask later; a faster network will not help. {_BY_PAIR}",
        explains=min(1.0, waiting * place.median),
    )


def _who(place: Place) -> str:
    """Both ranks, where they are the same ones in every trial."""
    names = ("mpi_waiting_rank", "mpi_waited_for_rank")
    ranks = [set(place.point.values.get(name, ())) for name in names]
    share, part = (place.point.median(name) for name in ("mpi_waiting_rank_share", "mpi_waited_for_share"))
    if any(len(each) != 1 for each in ranks) or share is None or part is None or part < _MOST:
        whole = percent(_waiting(place))
        return f"Ranks wait {whole} of their time in receives and collectives, {percent(place.median)} of it because others send late"
    waiting, late = (grouped(each.pop()) for each in ranks)
    return f"Rank {waiting} waits {percent(share)} of its time, {percent(part)} of it because rank {late} sends late"


@rule
def waits_on_full_links(reading: Reading) -> Iterator[Finding]:
    """Ranks that wait while the link carries as much as it can."""
    yield from _of_one_cause(
        reading,
        "waits_on_full_links",
        "mpi_wait_line_rate_share",
        "Waits at line rate",
        "because the link is full",
        "Measure on a faster link, or send less.",
    )


@rule
def waits_for_lost_packets(reading: Reading) -> Iterator[Finding]:
    """Ranks that wait until what was lost comes again."""
    yield from _of_one_cause(
        reading,
        "waits_for_lost_packets",
        "mpi_wait_retransmission_share",
        "Waits for lost packets",
        "for packets that were lost and sent again",
        "Find where packets are lost: cables, queues that are too short, or a link that is too full.",
    )


@rule
def waits_for_closed_windows(reading: Reading) -> Iterator[Finding]:
    """Ranks that wait while a receiver has no room for what was sent."""
    yield from _of_one_cause(
        reading,
        "waits_for_closed_windows",
        "mpi_wait_closed_window_share",
        "Waits for a closed window",
        "because a receiver's TCP window was closed to what had been sent",
        "Let the receiver post its receives and enter MPI earlier, or give its sockets larger buffers.",
    )


@rule
def waits_without_core(reading: Reading) -> Iterator[Finding]:
    """Ranks that wait for one that could go on and has no processor."""
    yield from _of_one_cause(
        reading,
        "waits_without_core",
        "mpi_wait_no_core_share",
        "Waits without a core",
        "because a rank that could have gone on had no processor",
        "Give every rank a processor of its own: fewer ranks per host, or more hosts.",
        group="time",
    )


def _of_one_cause(
    reading: Reading,
    name: str,
    metric: str,
    label: str,
    because: str,
    next_step: str,
    group: Group = "network",
) -> Iterator[Finding]:
    place = _worst(reading, metric)
    if place is None:
        return
    waiting = _waiting(place)
    yield Finding(
        name,
        group,
        f"Ranks wait {percent(waiting)} of their time in receives and collectives{reading.at(place.point)}, "
        f"{percent(place.median)} of it {because}.",
        reading.strength(doubtful=not reading.study.may_claim(place.point, metric=metric)),
        _evidence(reading, label, metric),
        _CHART,
        f"{next_step} {_BY_PAIR}",
        explains=min(1.0, waiting * place.median),
    )


def _worst(reading: Reading, metric: str) -> Place | None:
    """Where most of the ranks' time goes this way, if that is where ranks wait and most of why."""
    places = [place for place in reading.series(metric) if _waiting(place) >= _WAITING and place.median >= _MOST]
    return max(places, key=lambda place: _waiting(place) * place.median, default=None)


def _waiting(place: Place) -> float:
    return place.point.median("mpi_wait_share") or 0.0


def _evidence(reading: Reading, label: str, metric: str) -> tuple[Evidence, ...]:
    return tuple(Evidence(label, place.median, "share", metric, place.size) for place in reading.series(metric))
