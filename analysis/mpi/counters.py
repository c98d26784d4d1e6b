"""Counters of a rank outside MPI: instructions, cycles, cache misses, page faults.

The profile library reads one group of `perf_event_open(2)` between MPI calls, in user mode, of the thread that began
MPI. Values are scaled to all of its time outside MPI if other groups shared the processor's counters, or if readings were
left out. Without `LEAST_COUNTED` of that time they are absent.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from analysis.mpi import layout
from analysis.numbers import SHARE, amount

LEAST_COUNTED: Final = 0.9
"""Share of the time outside MPI that readings must surround."""
LEAST_RUNNING: Final = 0.1
"""Share of it in which the group must have had counters."""
CPU_TIME: Final = "cpu_s"
"""Name of the time on a CPU among the values: the kernel enables the group as long as the thread runs."""
_MOST: Final = 1 << 62
_ERRNOS: Final = 1 << 12
_OLD: Final = "the profile is of a version that counted nothing outside MPI"
_NO_COUNTERS: Final = "no hardware counters here (virtual machines often have none)"
_REASONS: Final[Mapping[int, str]] = {
    **dict.fromkeys((errno.ENOENT, errno.ENODEV, errno.ENXIO, errno.EOPNOTSUPP), _NO_COUNTERS),
    errno.ENOSYS: "the kernel has no perf_event_open, or a filter of system calls refuses it",
    errno.EBADF: "the program closed the files of the counters",
    errno.EMFILE: "the program may open no more files",
    errno.EINVAL: "the processor cannot count it beside the other events",
}


@dataclass(frozen=True, slots=True)
class Counters:
    """Events of one rank outside MPI; ``values`` by name of `layout.COUNTED`."""

    values: Mapping[str, float] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    """Reasons by name."""
    counted_share: float = 0.0
    """Share of the time outside MPI that was counted; values are scaled by it."""
    cost_s: float = 0.0
    """Time that the readings took."""


def _none(reason: str, cost_s: float = 0.0) -> Counters:
    return Counters(missing=dict.fromkeys((*layout.COUNTED, CPU_TIME), reason), cost_s=cost_s)


def read_counters(data: bytes, page: Any, *, useful_ticks: int, rate: float) -> Counters:
    """Return the counters behind the trace of a profile; none of older files."""
    offset = int(page["ring_at"]) + int(page["ring"]) * layout.record(layout.EVENT).itemsize
    if len(data) < offset + layout.COUNTERS_TYPE.itemsize:
        return _none(_OLD)
    block = np.frombuffer(data, layout.COUNTERS_TYPE, count=1, offset=offset)[0]
    if block["version"] != layout.counters_version():
        return _none(_OLD)
    errors = dict(zip(layout.COUNTED, block["errors"].tolist(), strict=True))
    missing = {name: _reason(code, int(block["level"]) - 2) for name, code in errors.items() if code}
    readings, enabled, running = (int(block[name]) for name in ("readings", "enabled", "running"))
    cost_s = readings * int(block["reading"]) / rate if readings else 0.0
    if len(missing) == len(errors):
        return Counters(missing=missing | {CPU_TIME: missing["page_faults"]}, cost_s=cost_s)
    counted = min(1.0, int(block["counted"]) / useful_ticks) if useful_ticks > 0 else 0.0
    share = min(1.0, running / enabled) if enabled else 0.0
    if reason := _too_little(counted, share, skipped=int(block["skipped"])):
        return _none(reason, cost_s)
    numbers = dict(zip(layout.COUNTED, block["values"].tolist(), strict=True))
    values = {name: number / share / counted for name, number in numbers.items() if not errors[name] and number < _MOST}
    return Counters(values | {CPU_TIME: enabled / 1e9 / counted}, missing, share * counted, cost_s)


def _reason(code: int, level: int) -> str:
    if code in (errno.EACCES, errno.EPERM):
        return f"the kernel permits it to no program (kernel.perf_event_paranoid is {level}; 2 is enough)"
    return _REASONS.get(code) or f"perf_event_open: {os.strerror(code) if code < _ERRNOS else 'failed'}"


def _too_little(counted: float, running: float, *, skipped: int) -> str:
    """Return why the values are of too little of the time, or ''."""
    if counted < LEAST_COUNTED and skipped:
        return (
            "MPI calls are too close together: reading the counters would take more than 1 % of the time between them; "
            f"{amount(counted, SHARE, 2)} of the time outside MPI was counted"
        )
    if counted < LEAST_COUNTED:
        return f"{amount(counted, SHARE, 2)} of the time outside MPI was counted"
    if running < LEAST_RUNNING:
        return f"other programs used the processor's counters: the rank had them for {amount(running, SHARE, 2)} of its time"
    return ""


METRICS: Final[Mapping[str, str]] = {
    "processor_instructions": "instructions",
    "processor_cycles": "cycles",
    "processor_ipc": "cycles",
    "processor_frequency_hz": "cycles",
    "processor_cache_misses": "cache_misses",
    "processor_page_faults": "page_faults",
    "processor_cpu_s": CPU_TIME,
    "processor_counted_share": CPU_TIME,
}
"""Metrics of the catalogue, each with the value without which it is absent."""


def counter_metrics(ranks: Sequence[tuple[int, Counters]]) -> tuple[dict[str, float], dict[str, str]]:
    """Return the metrics of a trial from (rank, counters), and why others are absent.

    Sums need all ranks.
    """
    sums = {
        name: sum(counters.values[name] for _, counters in ranks)
        for name in (*layout.COUNTED, CPU_TIME)
        if all(name in counters.values for _, counters in ranks)
    }
    instructions, cycles, cpu_s = (sums.get(name) for name in ("instructions", "cycles", CPU_TIME))
    metrics = {
        "processor_instructions": instructions,
        "processor_cycles": cycles,
        "processor_ipc": instructions / cycles if instructions and cycles else None,
        "processor_frequency_hz": cycles / cpu_s if cycles and cpu_s else None,
        "processor_cache_misses": sums.get("cache_misses"),
        "processor_page_faults": sums.get("page_faults"),
        "processor_cpu_s": cpu_s,
        "processor_counted_share": min(counters.counted_share for _, counters in ranks) if cpu_s else None,
    }
    absent = {name: _why(ranks, METRICS[name]) for name, value in metrics.items() if value is None}
    return {name: value for name, value in metrics.items() if value is not None}, absent


def _why(ranks: Sequence[tuple[int, Counters]], name: str) -> str:
    """Return the reason of the first rank that lacks a value, and which if not all do."""
    lacking = [(rank, counters.missing[name]) for rank, counters in ranks if name in counters.missing]
    if not lacking:
        return "nothing was counted"
    rank, reason = lacking[0]
    return reason if len(lacking) == len(ranks) else f"rank {rank}: {reason}"
