"""Directories and addresses of a host, for programs of the standard library."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from pathlib import Path


def memory_directory(needed_bytes: int) -> str:
    """Return a directory with room, in memory if possible: a disk is not measured.

    The temporary directory comes first, because that of the virtual test-bed is in memory and ends with it. Raise OSError if none has
    room.
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
    """Return this host's address for other hosts; loopback if its name has none."""
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return "127.0.0.1"
