"""Control group (version 2) of one trial's programs, beside the worker's group.

A service of the worker that is delegated allows this (`Delegate=yes`, and `DelegateSubgroup=worker`, so that the worker's group
holds the worker alone). Elsewhere `Group.make` returns None and the limits of single processes have to do.
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
        """Return a group beside the worker's, with both limits; None if not permitted."""
        parent = (worker or own_group() or Path("/")).parent
        if not set(CONTROLLERS) <= set(_words(parent / "cgroup.controllers")):
            return None
        _remove_old(parent)
        path = parent / f"{NAME}{os.getpid()}-{next(_NUMBERS)}"
        # If the kernel delegates the cpu controller, thousands of processes of a trial leave half of them to the site.
        with contextlib.suppress(OSError):
            (parent / "cgroup.subtree_control").write_text("+cpu")
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
        """Add the calling process to the group."""
        os.write(self._processes, b"0")

    def events(self) -> dict[str, int]:
        """Return how often the kernel killed a member for memory, and refused one."""
        return {
            "memory": _count(self.path / "memory.events", "oom_kill"),
            "processes": _count(self.path / "pids.events", "max"),
        }

    def remove(self) -> None:
        """Remove the empty group. Idempotent."""
        if self._processes >= 0:
            os.close(self._processes)
            self._processes = -1
        with contextlib.suppress(OSError):
            self.path.rmdir()


def own_group(membership: Path = Path("/proc/self/cgroup")) -> Path | None:
    """Return the directory of this process's group; None in the root group."""
    for line in membership.read_text().splitlines():
        if line.startswith("0::"):
            group = line.removeprefix("0::/")
            return next(
                (mount / group for mount in MOUNTED if group and (mount / group / "cgroup.procs").exists()), None
            )
    return None


def _remove_old(parent: Path) -> None:
    """Remove groups of killed agents; groups in use and those of living agents stay."""
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
