"""Who runs a trial: a name that stays true after a crash, so that the trials of a dead process are found at once."""

from __future__ import annotations

import os
import socket

import psutil


def identity() -> str:
    """Return ``host:pid:start``: the start time (boot clock, in ticks) tells a process from a later one with the same number."""
    return f"{socket.gethostname()}:{os.getpid()}:{_start(os.getpid())}"


def is_gone(worker: str) -> bool:
    """Return whether ``worker`` certainly no longer runs. A worker of another machine is never certainly gone."""
    host, _, process = worker.partition(":")
    pid, _, start = process.partition(":")
    if host != socket.gethostname() or not pid.isdigit():
        return False
    return _start(int(pid)) != start


def is_alive_here(worker: str) -> bool:
    """Return whether ``worker`` certainly runs, as a process of this machine."""
    return worker.partition(":")[0] == socket.gethostname() and not is_gone(worker)


def _start(pid: int) -> str:
    """Return the start time of a process in clock ticks since boot, which no step of the clock changes; empty when there is none."""
    try:
        if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return ""
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:  # noqa: PTH123
            return stat.read().rpartition(")")[2].split()[19]
    except (psutil.NoSuchProcess, OSError, IndexError):
        return ""
