"""System calls that Python 3.11 lacks, as plain functions that raise OSError."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

CLONE_NEWNS = 0x00020000  # linux/sched.h
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
MS_RDONLY = 1  # linux/mount.h
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18
PR_SET_PDEATHSIG = 1  # linux/prctl.h
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
FALLOC_FL_KEEP_SIZE = 1  # linux/falloc.h
FALLOC_FL_PUNCH_HOLE = 2

_libc = ctypes.CDLL(None, use_errno=True)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    """Leave the given namespaces of this process for fresh ones (unshare(2))."""
    _check(_libc.unshare(flags), "unshare")


def setns(path: Path, kind: int) -> None:
    """Enter the namespace of kind CLONE_NEW* that `path` names (setns(2))."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        enter(descriptor, kind)
    finally:
        os.close(descriptor)


def enter(descriptor: int, kind: int) -> None:
    """Enter the namespace of an open descriptor."""
    _check(_libc.setns(descriptor, kind), "setns")


def mount(source: str, target: Path, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Call mount(2)."""
    _check(
        _libc.mount(source.encode(), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), options.encode()),
        f"mount {target}",
    )


def bind(source: Path, target: Path) -> None:
    """Show `source` at `target`, which must exist."""
    mount(str(source), target, flags=MS_BIND)


def control(operation: int, *values: int) -> None:
    """Call prctl(2) with up to four numbers."""
    numbers = [ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]]
    _check(_libc.prctl(operation, *numbers), f"prctl {operation}")


def system_call(number: int, *values: Any) -> None:
    """Call syscall(2), for calls without a function in the C library."""
    _check(_libc.syscall(ctypes.c_long(number), *values), f"system call {number}")


def die_with_parent(signal_number: int) -> None:
    """Receive `signal_number` when the parent thread ends, also after execve."""
    _check(_libc.prctl(PR_SET_PDEATHSIG, signal_number, 0, 0, 0), "prctl PDEATHSIG")


def adopt_orphans() -> None:
    """Become the parent of orphaned descendants, as PID 1 of a namespace is."""
    _check(_libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl CHILD_SUBREAPER")


def punch_hole(descriptor: int, offset: int, length: int) -> None:
    """Free the disk of a range of a file; it reads as zeros (fallocate(2))."""
    flags = FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE
    _check(_libc.fallocate(descriptor, flags, ctypes.c_long(offset), ctypes.c_long(length)), "fallocate")
