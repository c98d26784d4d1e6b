"""Programs that use one core of the machine."""

from __future__ import annotations

from workers.agent import process_table

PINNED = "import os, time\nos.sched_setaffinity(0, {{{core}}})\nend = time.monotonic() + {seconds}\nwhile time.monotonic() < end: pass"


def cpu_s(pid: int) -> float:
    entry = process_table.read(pid)
    assert entry is not None
    return entry.user_s + entry.system_s
