"""Watching processes from outside."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import psutil


def wait_for(condition: Callable[[], bool], *, timeout_s: float = 60.0) -> None:
    """Return as soon as `condition` holds; fail when it does not within the deadline."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {condition.__name__}"
        time.sleep(0.05)


def wait_until_gone(var: Path, *, timeout_s: float) -> None:
    """Wait until no process uses a var directory; fail with the remaining ones."""
    deadline = time.monotonic() + timeout_s
    while remaining := processes_of(var):
        assert time.monotonic() < deadline, remaining
        time.sleep(0.05)


def is_alive(process: psutil.Process) -> bool:
    """Return False for a process that ended, also if it was not reaped yet."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def processes_of(var: Path) -> list[psutil.Process]:
    """Return processes with a var directory in arguments, variables or cwd."""
    processes = []
    for process in psutil.process_iter():
        try:
            texts = [*process.cmdline(), process.environ().get("RANKWIRE_VAR", ""), process.cwd()]
        except psutil.Error:
            continue
        if is_alive(process) and any(text.startswith(str(var)) for text in texts):
            processes.append(process)
    return processes


def called(processes: Iterable[psutil.Process], words: str) -> list[psutil.Process]:
    """Those whose command line holds `words`; processes come and go while one looks."""
    matching = []
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            if words in " ".join(process.cmdline()):
                matching.append(process)
    return matching


def process_of(var: Path, part: str) -> psutil.Process:
    """The one process of `var` (the topmost) with `part` in its command line."""
    matching = called(processes_of(var), part)
    numbers = {p.pid for p in matching}
    [top] = [p for p in matching if p.ppid() not in numbers]
    return top
