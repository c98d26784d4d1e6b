"""Identity of workers: valid after a crash, to find dead ones at once."""

from __future__ import annotations

import os
import socket

import psutil


def identity() -> str:
    """Return ``host:pid:start``; the start (boot clock) distinguishes pids."""
    return f"{socket.gethostname()}:{os.getpid()}:{_start(os.getpid())}"


def is_gone(worker: str) -> bool:
    """Return whether ``worker`` has certainly ended; unknown for other machines."""
    host, _, process = worker.partition(":")
    pid, _, start = process.partition(":")
    if host != socket.gethostname() or not pid.isdigit():
        return False
    return _start(int(pid)) != start


def is_alive_here(worker: str) -> bool:
    """Return whether ``worker`` certainly runs on this machine."""
    return worker.partition(":")[0] == socket.gethostname() and not is_gone(worker)


def _start(pid: int) -> str:
    """Return a process's start in clock ticks since boot; empty if it has ended."""
    try:
        if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return ""
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:  # noqa: PTH123
            return stat.read().rpartition(")")[2].split()[19]
    except (psutil.NoSuchProcess, OSError, IndexError):
        return ""
