"""Processes of /proc: parents, sessions, CPU ticks. proc(5) describes the fields."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Entry(NamedTuple):
    """One process at one moment."""

    pid: int
    parent: int
    session: int
    state: str
    threads: int
    started_ticks: int
    user_s: float
    system_s: float
    memory_bytes: int
    waited_for_s: float
    """CPU time of its children that have ended."""


def entries() -> Iterator[Entry]:
    """Yield every process of this /proc; those that end meanwhile are left out."""
    for name in os.listdir("/proc"):  # noqa: PTH208 - a hot path: strings, not Path objects
        if name.isdigit() and (entry := read(int(name))) is not None:
            yield entry


def read(pid: int) -> Entry | None:
    """Return one process; None if it has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stream:  # noqa: PTH123
            text = stream.read()
    except OSError:
        return None
    # The program's name is in parentheses and may contain parentheses: split after the last one.
    fields = text[text.rindex(")") + 2 :].split()
    return Entry(
        pid=pid,
        parent=int(fields[1]),
        session=int(fields[3]),
        state=fields[0],
        threads=int(fields[17]),
        started_ticks=int(fields[19]),
        user_s=int(fields[11]) / TICKS_PER_SECOND,
        system_s=int(fields[12]) / TICKS_PER_SECOND,
        memory_bytes=int(fields[21]) * PAGE_BYTES,
        waited_for_s=(int(fields[13]) + int(fields[14])) / TICKS_PER_SECOND,
    )


def tree(ancestor: int) -> list[Entry]:
    """Return all descendants of `ancestor`, parents first, zombies included."""
    children: dict[int, list[Entry]] = {}
    for entry in entries():
        children.setdefault(entry.parent, []).append(entry)
    below: list[Entry] = []
    pending = [ancestor]
    while pending:
        direct = children.get(pending.pop(), [])
        pending += [child.pid for child in direct]
        below += direct
    fresh = ((entry, read(entry.pid)) for entry in below)
    return [now for entry, now in fresh if now is not None and now.started_ticks == entry.started_ticks]


def descendants(ancestor: int, spared_sessions: frozenset[int] = frozenset()) -> list[Entry]:
    """Return the living descendants of `ancestor` outside the spared sessions."""
    return [entry for entry in tree(ancestor) if entry.session not in spared_sessions and entry.state != "Z"]


def private_memory_bytes(pid: int) -> int:
    """Return the resident memory of a process alone; 0 if it has ended."""
    return _bytes_of(f"/proc/{pid}/status", "RssAnon")


def shared_memory_bytes(pid: int, *, proportional: bool = False) -> int:
    """Return a process's resident memory that others may share; 0 if it has ended.

    Files of a disk are left out. `proportional`: its share of each page, which costs a look at all of them (Linux 5.3).
    """
    if proportional:
        return _bytes_of(f"/proc/{pid}/smaps_rollup", "Pss_Shmem")
    return _bytes_of(f"/proc/{pid}/status", "RssShmem")


def available_memory_bytes() -> int:
    """Return the memory that programs may take without swapping (MemAvailable)."""
    return _bytes_of("/proc/meminfo", "MemAvailable")


def _bytes_of(file: str, name: str) -> int:
    """Return the size in the line `name`; 0 without it."""
    try:
        with open(file, encoding="utf-8", errors="replace") as stream:  # noqa: PTH123
            return next((int(line.split()[1]) * 1024 for line in stream if line.startswith(f"{name}:")), 0)
    except OSError:
        return 0
