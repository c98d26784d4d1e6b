"""Rules about counters of hosts: ports, link errors, heat, uneven power."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from analysis.conclusions.observations.reading import Reading, SizeEntry
from analysis.conclusions.rules.registry import Finding, finding_at, rule
from analysis.conclusions.wording import percent
from analysis.numbers import amount, grouped, plural

_FULL: Final = 0.9
_CONGESTED: Final = 0.05
_UNEVEN: Final = 1.15
"""Ratio of the powers of two hosts; equal processors differ by less."""
LEAST_PER_MPI_BYTE: Final = 0.95
"""Bytes of networks per byte of messages between hosts: packets have headers, so fewer than 1 means a network unseen."""
MOST_OF_HEADERS: Final = 1.1
_MOST_OF_COLLECTIVES: Final = 10
"""Times the bytes passed to collectives: a library sends them at most about log2(ranks) times."""
_UNEXPLAINED_BYTES: Final = 1e9


def _in_mpi(entry: SizeEntry) -> float | None:
    """Return the share of the ranks' time in MPI: a network cannot cost more."""
    shares = [entry.point.median(f"mpi_{part}_share") for part in ("on_cpu", "blocked")]
    return None if None in shares else sum(share or 0.0 for share in shares)


@rule
def port_saturated(reading: Reading) -> Iterator[Finding]:
    """Report a port whose busiest second reached its rate."""
    for metric, what in (("fabric_peak_share", "A fabric port"), ("ethernet_peak_share", "An Ethernet interface")):
        worst = reading.highest(metric)
        if worst is not None and worst.median >= _FULL:
            words = {"what": what, "share": percent(worst.median), "explains": _in_mpi(worst)}
            yield finding_at(reading, "port_saturated", worst, metric, "Peak of its rate", **words)


@rule
def networks_disagree(reading: Reading) -> Iterator[Finding]:
    """Report networks whose counters do not fit the messages of the ranks' calls."""
    entries = [
        entry for entry in reading.series("networks_per_mpi_byte") if entry.point.median("mpi_between_hosts_bytes")
    ]
    if not entries:
        return
    label = "Bytes of networks per MPI byte"
    lowest, highest = (by(entries, key=lambda entry: entry.median) for by in (min, max))
    if lowest.median < LEAST_PER_MPI_BYTE:
        words = {"share": percent(lowest.median)}
        yield finding_at(reading, "networks_disagree,fewer", lowest, "networks_per_mpi_byte", label, **words)
    between = highest.point.median("mpi_between_hosts_bytes") or 0.0
    collectives = highest.point.median("mpi_collective_bytes")
    if collectives is None:
        return
    more = (highest.median - MOST_OF_HEADERS) * between - _MOST_OF_COLLECTIVES * collectives
    if more > max(_UNEXPLAINED_BYTES, between):
        words = {"more": amount(more, "B", 2)}
        yield finding_at(reading, "networks_disagree,more", highest, "networks_per_mpi_byte", label, **words)


@rule
def fabric_congestion(reading: Reading) -> Iterator[Finding]:
    """Report ports that had data and no credits to send it."""
    worst = reading.highest("fabric_wait_share")
    if worst is None or worst.median < _CONGESTED:
        return
    in_mpi = _in_mpi(worst)
    explains = None if in_mpi is None else worst.median * in_mpi
    words = {"share": percent(worst.median), "explains": explains}
    yield finding_at(reading, "fabric_congestion", worst, "fabric_wait_share", "Waiting for credits", **words)


@rule
def link_errors(reading: Reading) -> Iterator[Finding]:
    """Report errors of ports, of which one has most."""
    worst = reading.highest("fabric_worst_port_errors")
    if worst is None or worst.median < 1:
        return
    total = worst.point.median("fabric_errors") or worst.median
    words = {"errors": plural(total, "error"), "most": grouped(worst.median)}
    yield finding_at(reading, "link_errors", worst, "fabric_worst_port_errors", "Errors of the worst port", **words)


@rule
def throttled_host(reading: Reading) -> Iterator[Finding]:
    """Report processors that heat slowed."""
    worst = reading.highest("throttle_events")
    if worst is None or worst.median < 1:
        return
    words = {"times": plural(worst.median, "time")}
    yield finding_at(reading, "throttled_host", worst, "throttle_events", "Thermal throttling", **words)


@rule
def uneven_power(reading: Reading) -> Iterator[Finding]:
    """Report a host that draws more power than another one."""
    ratios = [
        (most / least, entry)
        for entry in reading.series("power_host_max_w")
        if (most := entry.median) and (least := entry.point.median("power_host_min_w"))
    ]
    ratio, worst = max(ratios, key=lambda pair: pair[0], default=(1.0, None))
    if worst is None or ratio < _UNEVEN:
        return
    words = {"more": percent(ratio - 1)}
    yield finding_at(reading, "uneven_power", worst, "power_host_max_w", "Power of the hungriest host", **words)
