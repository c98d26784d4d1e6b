"""Counters of disturbances of this machine: swapping, throttling, clock changes.

Standard library and Python 3.9 only: this runs with every agent. Counters that a machine lacks stay 0.
"""

from __future__ import annotations

import functools
import glob
import os
import time
from typing import Any

LOOKS_AT_CLOCKS = 5
THROTTLED = "/sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/core_throttle_count"


def counters() -> dict[str, Any]:
    """Return cumulative counters, and the present `realtime_offset_ns`."""
    return {
        "swapped_in_bytes": swapped_in_bytes(),
        "throttle_events": sum(_number(path) for path in _throttle_files()),
        "throttled_s": throttled_s(),
        "realtime_offset_ns": realtime_offset_ns(),
    }


def swapped_in_bytes() -> int:
    """Return the bytes fetched from swap since the machine started (proc_vmstat(5))."""
    for line in _lines("/proc/vmstat"):
        if line.startswith("pswpin "):
            return int(line.split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def throttled_s() -> float:
    """Return how long the limit of this control group has stopped its programs."""
    for line in _lines(_limit_file()):
        name, _, value = line.partition(" ")
        if name == "throttled_usec":
            return int(value) / 1e6
    return 0.0


def realtime_offset_ns() -> int:
    """Return the wall clock minus CLOCK_MONOTONIC, from the shortest reading."""
    looks = []
    for _ in range(LOOKS_AT_CLOCKS):
        before = time.monotonic_ns()
        now = time.time_ns()
        after = time.monotonic_ns()
        looks.append((after - before, now - (before + after) // 2))
    return min(looks)[1]


@functools.lru_cache(maxsize=1)
def _throttle_files() -> tuple[str, ...]:
    return tuple(glob.glob(THROTTLED))  # noqa: PTH207 - pathlib would double the start of an agent


@functools.lru_cache(maxsize=1)
def _limit_file() -> str:
    """Return the statistics of this control group (version 2)."""
    for line in _lines("/proc/self/cgroup"):
        _, names, path = line.split(":", 2)
        if not names:
            return f"/sys/fs/cgroup{path.rstrip('/')}/cpu.stat"
    return ""


def _number(path: str) -> int:
    return next((int(line) for line in _lines(path) if line.isdigit()), 0)


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="ascii", errors="replace") as stream:  # noqa: PTH123
            return stream.read().splitlines()
    except OSError:
        return []
