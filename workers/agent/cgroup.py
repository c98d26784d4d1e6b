"""A control group (version 2) for the programs of one trial, where the worker's own group may have neighbours with limits.

That is so where the service of the worker is delegated (`Delegate=yes` and, so that the worker's group has no other work than the
worker, `DelegateSubgroup=worker`). Elsewhere the limits of single processes must do, and `Group.make` says None.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from pathlib import Path

MOUNTED = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"))
CONTROLLERS = ("memory", "pids")
NAME = "rankwire-trial-"
_NUMBERS = itertools.count(1)


class Group:
    """A group that exists."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._processes = os.open(path / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)

    @classmethod
    def make(cls, limits: dict[str, int], worker: Path | None = None) -> Group | None:
        """A group beside the worker's own, with both limits; None where the machine does not let us."""
        parent = (worker or own_group() or Path("/")).parent
        if not set(CONTROLLERS) <= set(_words(parent / "cgroup.controllers")):
            return None
        _remove_old(parent)
        path = parent / f"{NAME}{os.getpid()}-{next(_NUMBERS)}"
        try:
            (parent / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in CONTROLLERS))
            path.mkdir()
            (path / "memory.max").write_text(str(limits["memory_bytes"]))
            (path / "pids.max").write_text(str(limits["processes"]))
            return cls(path)
        except OSError:
            with contextlib.suppress(OSError):
                path.rmdir()
            return None

    def join(self) -> None:
        """The calling process becomes a member."""
        os.write(self._processes, b"0")

    def events(self) -> dict[str, int]:
        """How often the kernel ended a member for want of memory, and refused to start another one."""
        return {
            "memory": _count(self.path / "memory.events", "oom_kill"),
            "processes": _count(self.path / "pids.events", "max"),
        }

    def remove(self) -> None:
        """Once nobody is in it. Idempotent."""
        if self._processes >= 0:
            os.close(self._processes)
            self._processes = -1
        with contextlib.suppress(OSError):
            self.path.rmdir()


def own_group(membership: Path = Path("/proc/self/cgroup")) -> Path | None:
    """The directory of this process's own group of version 2; None in its root, which has no limits and no neighbours."""
    for line in membership.read_text().splitlines():
        if line.startswith("0::"):
            group = line.removeprefix("0::/")
            return next(
                (mount / group for mount in MOUNTED if group and (mount / group / "cgroup.procs").exists()), None
            )
    return None


def _remove_old(parent: Path) -> None:
    """Groups that a killed agent left. One that is in use stays, and so does that of a living agent, which nobody may be in yet."""
    for old in parent.glob(f"{NAME}*"):
        agent = old.name.removeprefix(NAME).partition("-")[0]
        if agent.isdecimal() and not Path(f"/proc/{agent}").exists():
            with contextlib.suppress(OSError):
                old.rmdir()


def _words(file: Path) -> list[str]:
    try:
        return file.read_text().split()
    except OSError:
        return []


def _count(file: Path, name: str) -> int:
    words = _words(file)
    return int(words[words.index(name) + 1]) if name in words else 0
