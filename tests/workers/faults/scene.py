"""State of a stuck worker from /proc and the interpreter's own stack dump."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterable
from pathlib import Path

import psutil

DUMPS_ITS_STACK = {"PYTHONFAULTHANDLER": "1"}
"""With these variables a Python program prints the stacks of all its threads when SIGABRT ends it."""
COMMAND_LENGTH = 160
DUMP_LIMIT_S = 5.0


def processes(family: Iterable[psutil.Process]) -> list[str]:
    """Return a line for each process: name, state, kernel wait channel."""
    lines = []
    for process in family:
        with contextlib.suppress(psutil.Error):
            command = " ".join(process.cmdline())[:COMMAND_LENGTH]
            waits = ", ".join(f"{task.name}: {_wait(task)}" for task in _tasks(process.pid))
            lines.append(f"{process.pid} of {process.ppid()} {process.name()} {process.status()} [{waits}] {command}")
    return lines


def _tasks(pid: int) -> list[Path]:
    with contextlib.suppress(OSError):
        return sorted(Path(f"/proc/{pid}/task").iterdir())
    return []


def _wait(task: Path) -> str:
    """Return the kernel function of the wait, and the system call with its arguments."""
    answer = []
    for name in ("wchan", "syscall"):
        with contextlib.suppress(OSError):
            answer.append(" ".join((task / name).read_text().split()[:3]))
    return " ".join(answer)


def directories(places: Iterable[Path]) -> list[str]:
    """Every file below each place with its length in bytes."""
    lines = []
    for directory in places:
        for file in sorted(directory.rglob("*")):
            with contextlib.suppress(OSError):
                lines.append(f"{file.relative_to(directory.parent)} {file.stat().st_size}")
    return lines


def print_stacks(programs: Iterable[psutil.Process]) -> None:
    """End programs that were started with DUMPS_ITS_STACK, with their stacks."""
    ended = []
    for program in programs:
        with contextlib.suppress(psutil.Error):
            program.send_signal(signal.SIGABRT)
            ended.append(program)
    psutil.wait_procs(ended, timeout=DUMP_LIMIT_S)
