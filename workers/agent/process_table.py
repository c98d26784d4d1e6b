"""Processes of /proc: parents, sessions, CPU ticks. proc(5) describes the fields."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
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
    processor: int
    """The core that it used last."""

    @property
    def has_ended(self) -> bool:
        """True for a zombie, but not if its first thread alone has ended."""
        return self.state == "Z" and self.threads == 1


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
        processor=int(fields[36]),
    )


def tree(ancestor: int, belongs: Callable[[Entry], bool] | None = None) -> list[Entry]:
    """Return all descendants of `ancestor`, parents first, zombies included.

    With other processes that ``belongs`` accepts, and their descendants.
    """
    everything = list(entries())
    children: dict[int, list[Entry]] = {}
    for entry in everything:
        children.setdefault(entry.parent, []).append(entry)
    below: dict[int, Entry] = {}
    _add_descendants(ancestor, children, below)
    for entry in everything if belongs else ():
        if belongs and entry.pid not in below and entry.pid != ancestor and belongs(entry):
            below[entry.pid] = entry
            _add_descendants(entry.pid, children, below)
    fresh = ((entry, read(entry.pid)) for entry in below.values())
    return [now for entry, now in fresh if now is not None and now.started_ticks == entry.started_ticks]


def _add_descendants(ancestor: int, children: dict[int, list[Entry]], below: dict[int, Entry]) -> None:
    pending = [ancestor]
    while pending:
        direct = [child for child in children.get(pending.pop(), []) if child.pid not in below]
        pending += [child.pid for child in direct]
        below.update((child.pid, child) for child in direct)


def descendants(ancestor: int, spared_sessions: frozenset[int] = frozenset()) -> list[Entry]:
    """Return the living descendants of `ancestor` outside the spared sessions."""
    return [entry for entry in tree(ancestor) if entry.session not in spared_sessions and not entry.has_ended]


def private_memory_bytes(pid: int) -> int:
    """Return the resident memory of a process alone; 0 if it has ended."""
    return _memory_bytes(pid, "status", "RssAnon")


def shared_memory_bytes(pid: int, *, proportional: bool = False) -> int:
    """Return a process's resident memory that others may share; 0 if it has ended.

    Files of a disk are left out. `proportional`: its share of each page, which costs a look at all of them (Linux 5.3).
    """
    if proportional:
        return _memory_bytes(pid, "smaps_rollup", "Pss_Shmem")
    return _memory_bytes(pid, "status", "RssShmem")


def available_memory_bytes() -> int:
    """Return the memory that programs may take without swapping (MemAvailable)."""
    return _bytes_of("/proc/meminfo", "MemAvailable")


def _memory_bytes(pid: int, file: str, name: str) -> int:
    """Return a size of a process; its first thread has none if others alone remain."""
    if of_first := _bytes_of(f"/proc/{pid}/{file}", name):
        return of_first
    with contextlib.suppress(OSError):
        sizes = (_bytes_of(f"/proc/{thread}/{file}", name) for thread in os.listdir(f"/proc/{pid}/task"))  # noqa: PTH208
        return next(filter(None, sizes), 0)
    return 0


def _bytes_of(file: str, name: str) -> int:
    """Return the size in the line `name`; 0 without it."""
    try:
        with open(file, encoding="utf-8", errors="replace") as stream:  # noqa: PTH123
            return next((int(line.split()[1]) * 1024 for line in stream if line.startswith(f"{name}:")), 0)
    except OSError:
        return 0
