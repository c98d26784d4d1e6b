"""Where a program of Rankwire's may put files on a host, and under which address other hosts reach it. Standard library only."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from pathlib import Path


def memory_directory(needed_bytes: int) -> str:
    """Return a directory with room, in memory where there is one: what is measured is the network, not a disk.

    The temporary directory comes first, because that of the virtual test-bed lies in memory and ends with it. Raise OSError when
    none has room.
    """
    candidates = list(dict.fromkeys((tempfile.gettempdir(), "/dev/shm", "/var/tmp")))  # noqa: S108 (mkdtemp makes ours)
    in_memory = [path for path in candidates if os.path.isdir(path) and file_system(path) == "tmpfs"]  # noqa: PTH112
    for path in [*in_memory, *(path for path in candidates if path not in in_memory)]:
        if os.access(path, os.W_OK) and shutil.disk_usage(path).free >= needed_bytes:
            return path
    raise OSError(f"no directory has room for {needed_bytes / 1e6:.0f} MB")


def file_system(path: str) -> str:
    """Return the type of the file system that holds ``path``."""
    mounts = [line.split()[1:3] for line in Path("/proc/self/mounts").read_text().splitlines()]
    real = os.path.realpath(path)
    holding = [(len(point), kind) for point, kind in mounts if os.path.commonpath([real, point]) == point]
    return max(holding)[1]


def address() -> str:
    """Return this host's address for the other hosts; loopback where its name means nothing."""
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return "127.0.0.1"
