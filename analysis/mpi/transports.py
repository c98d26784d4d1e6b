"""Transport of messages and places of ranks, by what their processes held. Pure.

The profile library writes a text for each rank: shared memory, devices and components of the MPI library in its memory,
and its TCP connections with the bytes that the peer acknowledged. A connection counts if both of its ends are ranks.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from analysis.numbers import amount, plural

# A program can write these files itself: numbers and words are bounded.
_BYTES: Final = re.compile(r"[0-9]{1,18}")
_PLACE: Final = re.compile(r"-?[0-9]{1,9}")
_RUN: Final = re.compile(r"([0-9]{1,4})(?:-([0-9]{1,4}))?")
_ALLOWED: Final = re.compile(r"[0-9,-]{1,255}|\?")
_MOST_NAMES: Final = 8
_LAYER: Final = re.compile(r"/mca_pml_([a-z0-9]{1,20})\.so$")
_SEGMENTS: Final = (
    ("Open MPI", re.compile(r"shm/((?:vader|sm)_segment\.\S+)")),
    ("UCX", re.compile(r"shm/(ucx_shm_posix_\S+)|^/(SYSV[0-9a-f]+)")),
    ("PSM", re.compile(r"shm/(psm[23]?_shm\S*)")),
)
"""A process maps a segment of its own too: shared memory is in use from the second one on."""
_DEVICES: Final = (
    ("InfiniBand or RoCE", re.compile(r"/dev/infiniband/(uverbs[0-9]{1,4})")),
    ("Slingshot", re.compile(r"/dev/(cxi[0-9]{1,4})")),
    ("Omni-Path", re.compile(r"/dev/(hfi1_[0-9]{1,4})")),
    ("EFA or verbs", re.compile(r"/dev/(efa_?[0-9]{1,4})")),
)


@dataclass(frozen=True, slots=True)
class ObservedTransport:
    """Transport between ranks; ``tcp_bytes`` went over connections between ranks."""

    tcp_bytes: int
    shared_memory: tuple[str, ...]
    """Families of the segments that several processes mapped."""
    devices: tuple[str, ...]
    """Devices that bypass the kernel: "InfiniBand or RoCE (uverbs0)"."""
    layer: str
    """Component of Open MPI's point-to-point layer: ob1, ucx or cm; empty if not known."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "tcp_bytes": self.tcp_bytes,
            "shared_memory": list(self.shared_memory),
            "devices": list(self.devices),
            "layer": self.layer,
        }


def observed_transport(texts: Mapping[int, str], hosts: Mapping[int, str]) -> ObservedTransport | None:
    """Return the transport of all ranks; None if a text is missing.

    ``hosts``: by rank.
    """
    if not texts or texts.keys() != hosts.keys():
        return None
    connections: dict[tuple[str, ...], int] = {}
    shared: dict[str, None] = {}
    devices: dict[str, None] = {}
    layers: dict[str, None] = {}
    for rank, text in texts.items():
        lines = text.splitlines()
        for line in lines:
            if (key := _connection(line, hosts[rank])) is not None:
                connections[key] = int(line.split()[-1])
        layers |= dict.fromkeys(match[1] for line in lines if (match := _LAYER.search(line)))
        devices |= dict.fromkeys(
            f"{name} ({match[1]})" for line in lines for name, pattern in _DEVICES if (match := pattern.match(line))
        )
        for family, pattern in _SEGMENTS:
            segments = {match[0] for line in lines if (match := pattern.search(line))}
            if len(segments) > 1 or any("SYSV" in segment for segment in segments):
                shared[family] = None
    between = [size for (host, *ends), size in connections.items() if (host, *ends[2:], *ends[:2]) in connections]
    layer = ", ".join([*layers][:_MOST_NAMES])
    if layer == "ucx":
        shared.pop("Open MPI", None)  # its segments are for one-sided calls then
    return ObservedTransport(sum(between), tuple(shared), tuple(devices)[:_MOST_NAMES], layer)


def place_of(text: str) -> dict[str, Any]:
    """Return where a rank ran, from the begin of MPI to its end; empty if not known.

    ``cpus``: hardware threads that it was seen on; ``allowed``: those that it might use. ``cpu``, NUMA node, socket, core and
    ``allowed`` are of the end; ``allowed_first`` if it was different at the begin.
    """
    lines = [line.split() for line in text.splitlines()]
    rows = [words[1:] for words in lines if len(words) == 6 and words[0] == "placed"]
    between = next((words[1] for words in lines if len(words) == 2 and words[0] == "ran"), "")
    if len(rows) != 2 or not all(_PLACE.fullmatch(number) for row in rows for number in row[:4]):
        return {}
    if any(_ALLOWED.fullmatch(row[4]) is None for row in rows):
        return {}
    (first, *_, allowed_first), (last, numa, socket, core, allowed) = rows
    cpus = sorted({int(first), int(last), *numbers_of(between)})
    at_end = {"cpu": int(last), "numa": int(numa), "socket": int(socket), "core": int(core)}
    return {
        "cpus": cpus,
        **at_end,
        "allowed": allowed,
        **({"allowed_first": allowed_first} if allowed_first != allowed else {}),
    }


def places_in_words(rows: Mapping[int, Mapping[str, Any]], hosts: Mapping[int, str]) -> str:
    """Return the placement: "4 ranks ended on 2 cores; each may use 1 CPU"."""
    if not rows or not all(row and row["core"] >= 0 for row in rows.values()):
        return ""  # some virtual machines and containers have no topology
    cores = {(hosts[rank], row["socket"], row["core"]) for rank, row in rows.items()}
    allowed = sorted({len(numbers_of(row["allowed"])) for row in rows.values()})
    usable = plural(allowed[0], "CPU") if len(allowed) == 1 else f"{allowed[0]} to {plural(allowed[-1], 'CPU')}"
    return f"{plural(len(rows), 'rank')} ended on {plural(len(cores), 'core')}; each may use {usable}"


def numbers_of(cpus: str) -> list[int]:
    """Return the CPUs in a rising list such as 0-3,8; [] if it cannot be read."""
    runs = [_RUN.fullmatch(run) for run in cpus.split(",")]
    ends = [(int(run[1]), int(run[2] or run[1])) for run in runs if run]
    rising = [cpu for run in ends for cpu in run[: 1 + (run[0] != run[1])]]
    if len(ends) < len(runs) or any(later <= cpu for cpu, later in pairwise(rising)):
        return []  # of overlapping runs a short text would have billions of CPUs
    return [cpu for first, last in ends for cpu in range(first, last + 1)]


def sentence(transport: ObservedTransport | None) -> str:
    """Return the transport in words; an unknown one is said as unknown."""
    if transport is None:
        return "unknown: the ranks left no report of their connections"
    parts = [
        *(f"shared memory ({family})" for family in transport.shared_memory),
        *transport.devices,
        *([f"TCP ({amount(transport.tcp_bytes, 'B')})"] if transport.tcp_bytes else []),
    ]
    layer = f", by Open MPI's {transport.layer}" if transport.layer else ""
    return (" and ".join(parts) or "no connection between ranks was seen") + layer


def _connection(line: str, host: str) -> tuple[str, ...] | None:
    """Return a connection's ends; those of a loopback interface with their host."""
    words = line.split()
    if len(words) != 6 or words[0] != "tcp" or not _BYTES.fullmatch(words[5]):
        return None
    try:
        is_loopback = ipaddress.ip_address(words[1]).is_loopback
    except ValueError:
        return None
    return (host if is_loopback else "", *words[1:5])
