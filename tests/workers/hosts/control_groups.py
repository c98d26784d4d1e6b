"""Tree of control groups in a directory, for tests without a delegated one."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

FILES = {"cgroup.procs": "", "memory.events": "low 0\noom 0\noom_kill 0\n", "pids.events": "max 0\n"}


class Tree:
    """A parent group with the worker's in it."""

    def __init__(self, parent: Path, monkeypatch: pytest.MonkeyPatch, controllers: str = "cpu memory pids") -> None:
        self.parent, self.worker = parent, parent / "worker"
        self.worker.mkdir()
        (parent / "cgroup.controllers").write_text(f"{controllers}\n")
        monkeypatch.setattr(Path, "mkdir", make)
        monkeypatch.setattr(Path, "rmdir", remove)

    def groups(self) -> list[Path]:
        """Those for trials."""
        return sorted(self.parent.glob("rankwire-trial-*"))


def make(group: Path, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
    """As ``Path.mkdir``, by the kernel."""
    os.mkdir(group, mode)  # noqa: PTH102 - which is replaced by this
    for name, text in FILES.items():
        (group / name).write_text(text)


def remove(group: Path) -> None:
    """As ``Path.rmdir``, by the kernel."""
    if (group / "cgroup.procs").read_text():
        raise OSError(errno.EBUSY, "it has members")
    shutil.rmtree(group)
