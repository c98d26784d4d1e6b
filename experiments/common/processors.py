"""Processors of a machine by /sys: sockets, NUMA nodes, cores and their CPUs.

A CPU is a hardware thread, as in the kernel. Standard library and Python 3.9 only: this runs with every agent.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

SYSTEM = Path("/sys/devices/system")
_RUN = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?")


class Core(NamedTuple):
    """One core: its socket, its NUMA node, and its CPUs that are online."""

    socket: int
    numa: int
    cpus: tuple[int, ...]


def numbers_of(text: str) -> list[int]:
    """Return the CPUs of a list as the kernel writes it ("0-3,8"); [] if it is none."""
    runs = [_RUN.fullmatch(run) for run in text.strip().split(",")]
    numbers = [number for run in runs if run for number in range(int(run[1]), int(run[2] or run[1]) + 1)]
    return numbers if all(runs) else []


def cores(system: Path = SYSTEM) -> list[Core]:
    """Return the cores by socket, NUMA node and first CPU; [] without a topology."""
    node_of = {
        cpu: int(node.name[4:])
        for node in system.glob("node/node[0-9]*")
        for cpu in numbers_of(_text(node / "cpulist"))
    }
    unordered = set()
    for directory in system.glob("cpu/cpu[0-9]*"):
        if (core := _core(directory, node_of.get(int(directory.name[3:]), 0))) is not None:
            unordered.add(core)
    return sorted(unordered, key=lambda core: (core.socket, core.numa, core.cpus))


def _core(directory: Path, numa: int) -> Core | None:
    """Return the core of a CPU; None if it is offline or has no topology."""
    cpus = numbers_of(_text(directory / "topology" / "thread_siblings_list"))
    socket = _text(directory / "topology" / "physical_package_id")
    if not cpus or not socket.lstrip("-").isdigit():
        return None
    return Core(max(int(socket), 0), numa, tuple(cpus))  # some boards write -1


def core_count(usable: Collection[int], system: Path = SYSTEM) -> int:
    """Return the number of cores of some CPUs; without a topology each is a core."""
    return _core_count(frozenset(usable), system)


@functools.lru_cache(maxsize=8)
def _core_count(usable: frozenset[int], system: Path) -> int:
    siblings = [_text(system / f"cpu/cpu{cpu}/topology/thread_siblings_list") for cpu in usable]
    return len(set(siblings)) if all(siblings) else len(usable)


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    return core_count(os.sched_getaffinity(0), SYSTEM)


def describe() -> dict[str, Any]:
    """Return all cores, and the CPUs that this process may use, JSON-able."""
    return {"cores": [list(core) for core in cores(SYSTEM)], "allowed": sorted(os.sched_getaffinity(0))}


def _text(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text().strip()
    return ""
