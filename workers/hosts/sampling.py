"""Use of the machine and its hosts over time: samples, and rates between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, Any, Final

from pydantic import Field, TypeAdapter, ValidationError

from workers.errors import ClusterUnavailable
from workers.hosts.answers import Integer, Number

_Name = Annotated[str, Field(max_length=100)]
_MOST_HOSTS, _MOST_RANKS, _MOST_TOTALS = 4096, 4096, 100
"""Of a sample, of a host, and of the counters of a host."""
_SHORTEST_S: Final = 1e-3
"""Between two reads of a counter whose rate is shown: other machines may send any time."""


@dataclass(frozen=True)
class HostSample:
    """Sample of one host: CPU s and frames so far; memory and runnable programs."""

    host: Annotated[str, Field(max_length=255)]
    cpu_user_s: Number
    cpu_system_s: Number
    memory_bytes: Integer
    runnable: Integer
    rx_bytes: Integer = 0
    rx_packets: Integer = 0
    tx_bytes: Integer = 0
    tx_packets: Integer = 0
    drops: Integer = 0
    ranks: Annotated[Mapping[_Name, Number], Field(max_length=_MOST_RANKS)] = field(default_factory=dict)
    """CPU seconds so far of each rank that runs there; ranks that have ended are not among them."""
    counters: Annotated[Mapping[_Name, tuple[Number, Number]], Field(max_length=_MOST_TOTALS)] = field(
        default_factory=dict
    )
    """Last (time, value) of every total of the counter sources (`workers.hosts.counters`)."""


@dataclass(frozen=True)
class MachineSample:
    """Sample of the machine: CPU seconds since boot over all usable cores.

    `cpu_ours_s`: of the trial and its instruments.
    """

    cpu_user_s: Number
    cpu_system_s: Number
    cpu_idle_s: Number
    memory_available_bytes: Integer
    runnable: Integer
    load_1min: Number
    cpu_interrupts_s: Number = 0.0
    """Of `cpu_system_s`: what the kernel did between programs, such as handing packets on. It is no program's."""
    cpu_stolen_s: Number = 0.0
    """Taken by the machine that this one is a virtual machine of."""
    cpu_ours_s: Number = 0.0
    swapped_in_bytes: Integer = 0
    throttle_events: Integer = 0
    """Count of the times that heat slowed a core."""
    throttled_s: Number = 0.0
    """How long the limit of its control group (a container's) held the trial."""
    realtime_offset_ns: Integer = 0
    cpus: Integer = 0
    """That programs here may use: hardware threads."""
    cores: Integer = 0
    """Of these CPUs: one core may have several."""
    cpu_numbers: Annotated[str, Field(max_length=10_000)] = ""
    """As "0-3, 8"."""
    rank_cores_s: Number = 0.0
    """Seconds of the cores of the ranks, since the agent's start."""
    rank_cores_taken_s: Number = 0.0
    """Of these what other programs took while none of a rank's cores was free."""
    memory_kills: Integer = 0
    """Processes that the kernel has ended for lack of memory, of the machine or of a control group."""


@dataclass(frozen=True)
class Sample:
    """Sample of machine and hosts at one moment of CLOCK_MONOTONIC."""

    monotonic_ns: Integer
    machine: MachineSample
    hosts: Annotated[tuple[HostSample, ...], Field(min_length=1, max_length=_MOST_HOSTS)]
    further: Mapping[str, MachineSample] = field(default_factory=dict)
    """Other hosts by name, if each host is a machine."""

    @property
    def machines(self) -> dict[str, MachineSample]:
        """Machines by host name; a machine of many hosts has the first one's name."""
        return {self.hosts[0].host if self.hosts else "": self.machine, **self.further}

    @classmethod
    def from_message(cls, message: dict[str, Any]) -> Sample:
        """Return the sample of an agent's answer. Raises ClusterUnavailable.

        Other machines may be hostile: samples are kept until the trial ends.
        """
        try:
            return _SAMPLE.validate_python(message)
        except ValidationError as error:
            raise ClusterUnavailable(f"A host sends no sample: {error.errors()[0]['msg']}.") from None

    @classmethod
    def of_machine(cls, host: str, message: dict[str, Any]) -> Sample:
        """Return the sample of another machine, one host. Raises ClusterUnavailable."""
        sample = cls.from_message(message)
        if [(of.host, len(of.ranks)) for of in sample.hosts] != [(host, 0)] or sample.further:
            raise ClusterUnavailable(f"{host} sends no sample: it is one of other hosts.")
        return sample


_SAMPLE: Final = TypeAdapter(Sample)


def memory_kills(samples: Sequence[Sample]) -> dict[str, int]:
    """Return by host how many processes the kernel ended for lack of memory meanwhile."""
    first, last = samples[0].machines, samples[-1].machines
    kills = {host: last[host].memory_kills - before.memory_kills for host, before in first.items() if host in last}
    return {host: count for host, count in kills.items() if count > 0}


def shares(samples: Sequence[Sample]) -> list[dict[str, Any]]:
    """Return rates between neighbouring samples, one row per interval and host.

    `t_s` is the interval's end since the first sample. CPU shares are of one core: a host with two busy ranks has 2.0; `drops`
    are frames in the interval. Intervals of no length are left out.
    """
    rows = []
    for before, after in pairwise(samples):
        length_s = (after.monotonic_ns - before.monotonic_ns) / 1e9
        if length_s <= 0:
            continue
        earlier = {host.host: host for host in before.hosts}
        rows += [
            {"t_s": (after.monotonic_ns - samples[0].monotonic_ns) / 1e9, **_rates(earlier[host.host], host, length_s)}
            for host in after.hosts
            if host.host in earlier
        ]
    return rows


def stored_shares(samples: Sequence[Sample]) -> list[dict[str, Any]]:
    """Return the stored `shares`, beginning at the first sample's wall-clock time."""
    rows = shares(samples)
    if rows and samples[0].machine.realtime_offset_ns:
        rows[0]["began_s"] = (samples[0].monotonic_ns + samples[0].machine.realtime_offset_ns) / 1e9
    return rows


RATES: Final[Mapping[str, str]] = {
    "package_j": "package_W",
    "dram_j": "dram_W",
    "gpu_j": "gpu_W",
    "host_j": "host_W",
    "fabric_sent_bytes": "fabric_tx_Bps",
    "fabric_received_bytes": "fabric_rx_Bps",
    "ethernet_sent_bytes": "ethernet_tx_Bps",
    "ethernet_received_bytes": "ethernet_rx_Bps",
    "nfs_read_bytes": "nfs_rx_Bps",
    "nfs_written_bytes": "nfs_tx_Bps",
}
"""Stored rates of totals that grow."""
WAITING: Final = "fabric_wait_share"
"""Of the ticks in which the ports of a host sent or waited."""
BYTES_PER_TICK: Final = 4
GAUGES: Final[Mapping[str, str]] = {
    "frequency_hz": "frequency_Hz",
    "temperature_c": "temperature_C",
    "gpu_share": "gpu_share",
}


def _counted(before: Mapping[str, Sequence[float]], after: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return rates and present values of counters that were read again."""
    row = {}
    for total, (at_s, value) in after.items():
        if total in GAUGES:
            row[GAUGES[total]] = value
        elif total in RATES and total in before and (length_s := at_s - before[total][0]) > _SHORTEST_S:
            row[RATES[total]] = (value - before[total][1]) / length_s
    waits, data = (
        after[total][1] - before[total][1] if total in before and total in after else None
        for total in ("fabric_wait_ticks", "fabric_sent_bytes")
    )
    if waits is not None and data is not None and waits >= 0 and data >= 0:
        ticks = waits + data / BYTES_PER_TICK
        if ticks > 0:
            row[WAITING] = waits / ticks
    return row


def _rates(before: HostSample, after: HostSample, length_s: float) -> dict[str, Any]:
    return {
        "host": after.host,
        "cpu_user_share": (after.cpu_user_s - before.cpu_user_s) / length_s,
        "cpu_system_share": (after.cpu_system_s - before.cpu_system_s) / length_s,
        "memory_bytes": after.memory_bytes,
        "runnable": after.runnable,
        "rx_Bps": (after.rx_bytes - before.rx_bytes) / length_s,
        "tx_Bps": (after.tx_bytes - before.tx_bytes) / length_s,
        "rx_pps": (after.rx_packets - before.rx_packets) / length_s,
        "tx_pps": (after.tx_packets - before.tx_packets) / length_s,
        "drops": after.drops - before.drops,
        **_counted(before.counters, after.counters),
    }
