"""What the hosts of a trial did over time, as a figure for each quantity."""

from __future__ import annotations

from typing import Any, Final

from analysis.numbers import SHARE
from dashboard.charts.hosts import HostLine, hosts_over_time
from dashboard.trial.host_samples import QUANTITIES, HostSamples

_VIEWS: Final = (
    ("CPU", "cpu_share", "CPU use of one core", SHARE),
    ("System", "cpu_system_share", "CPU use in the kernel, of one core", SHARE),
    ("Run queue", "runnable", "Runnable programs", ""),
    ("Memory", "memory_bytes", "Memory in use", "B"),
    ("Sent", "tx_Bps", "Sent", "B/s"),
    ("Received", "rx_Bps", "Received", "B/s"),
    ("Dropped", "drops_per_s", "Frames dropped by the interface", "1/s"),
)
"""(button, quantity, axis, unit)."""


def host_views(samples: HostSamples) -> list[tuple[str, Any]]:
    """(name, figure) of every quantity; drops only where there were any."""
    views = []
    for name, quantity, axis, unit in _VIEWS:
        index = QUANTITIES.index(quantity)
        if quantity == "drops_per_s" and not (samples.mean[:, :, index] > 0).any():
            continue
        lines = [_line(samples, number, index) for number in range(len(samples.hosts))]
        views.append((name, hosts_over_time(samples.t_s, lines, quantity=axis, unit=unit)))
    return views


def _line(samples: HostSamples, host: int, index: int) -> HostLine:
    count = samples.count[host].tolist()
    columns = [part[host, :, index].tolist() for part in (samples.mean, samples.low, samples.high)]
    steps = list(zip(*columns, count, strict=True))
    return HostLine(
        host=samples.hosts[host],
        means=[mean if n else None for mean, _, _, n in steps],
        ranges=[(low, high, n) if n else None for _, low, high, n in steps],
    )
