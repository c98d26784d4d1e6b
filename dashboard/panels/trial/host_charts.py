"""Activity of the hosts of a trial over time, one figure per quantity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from analysis.numbers import SHARE
from dashboard.charts.hosts import HostLine, hosts_over_time
from dashboard.charts.parts import MOST_SERIES, Figure, leads_to_packets
from dashboard.panels.trial.host_samples import HostSamples
from dashboard.panels.trial.packets import begin_of_packets
from experiments.models import Trial

_VIEWS: Final = (
    ("CPU", "cpu_share", "CPU use of one core", SHARE),
    ("System", "cpu_system_share", "CPU use in the kernel, of one core", SHARE),
    ("Run queue", "runnable", "Runnable programs", ""),
    ("Memory", "memory_bytes", "Memory in use", "B"),
    ("Sent", "tx_Bps", "Sent", "B/s"),
    ("Received", "rx_Bps", "Received", "B/s"),
    ("Dropped", "drops_per_s", "Frames dropped by the interface", "1/s"),
)
"""(Button, quantity, axis, unit)."""
COUNTED_VIEWS: Final = (
    ("Packages", "package_W", "Power of processor packages", "W"),
    ("Memory", "dram_W", "Power of memory", "W"),
    ("GPUs", "gpu_W", "Power of GPUs", "W"),
    ("Whole host", "host_W", "Power of the whole host", "W"),
    ("Fabric sent", "fabric_tx_Bps", "Sent by fabric ports", "B/s"),
    ("Fabric received", "fabric_rx_Bps", "Received by fabric ports", "B/s"),
    ("Waiting for credits", "fabric_wait_share", "Fabric ports waiting for credits", SHARE),
    ("Ethernet sent", "ethernet_tx_Bps", "Sent by Ethernet", "B/s"),
    ("Ethernet received", "ethernet_rx_Bps", "Received by Ethernet", "B/s"),
    ("Frequency", "frequency_Hz", "Mean core frequency", "Hz"),
    ("Temperature", "temperature_C", "Highest temperature", "°C"),
    ("GPU use", "gpu_share", "GPU use", SHARE),
    ("NFS read", "nfs_rx_Bps", "Read from NFS", "B/s"),
    ("NFS written", "nfs_tx_Bps", "Written to NFS", "B/s"),
)


View = tuple[str, str, str, str]


def host_views(
    samples: HostSamples,
    trial: Trial | None = None,
    views_of: Sequence[View] = _VIEWS,
    limits: Mapping[str, float] | None = None,
) -> list[tuple[str, Any]]:
    """Return (name, figure) of every quantity; steps of maps link to packets.

    ``limits``: largest possible values by quantity.
    """
    leads = None if trial is None else _leads(samples, trial)
    views = []
    for name, quantity, axis, unit in views_of:
        if quantity not in samples.quantities:
            continue
        index = samples.quantities.index(quantity)
        if quantity == "drops_per_s" and not (samples.mean[:, :, index] > 0).any():
            continue
        lines = [_line(samples, number, index) for number in range(len(samples.hosts))]
        options: dict[str, Any] = {"leads": leads, "zero_s": samples.began_s, "limit": (limits or {}).get(quantity)}
        views.append((name, hosts_over_time(samples.t_s, lines, quantity=axis, unit=unit, **options)))
    return views


def _leads(samples: HostSamples, trial: Trial) -> Figure | None:
    if len(samples.hosts) <= MOST_SERIES or samples.began_s is None:
        return None
    capture = begin_of_packets(trial)
    if capture is None:
        return None
    ends = [samples.began_s - capture + t_s for t_s in (0.0, *samples.t_s)]
    return leads_to_packets(trial.get_absolute_url(), list(pairwise(ends)))


def _line(samples: HostSamples, host: int, index: int) -> HostLine:
    count = (samples.count[host] * ~np.isnan(samples.mean[host, :, index])).tolist()
    columns = [part[host, :, index].tolist() for part in (samples.mean, samples.low, samples.high)]
    steps = list(zip(*columns, count, strict=True))
    return HostLine(
        host=samples.hosts[host],
        means=[mean if n else None for mean, _, _, n in steps],
        ranges=[(low, high, n) if n else None for _, low, high, n in steps],
    )
