"""Trees whose paths are too long for one system call."""

from __future__ import annotations

import os
from pathlib import Path


def nest(top: Path, depth: int) -> None:
    """Make directories with a path too long for one call, a file in the deepest."""
    current = os.open(top, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("a" * 20, dir_fd=current)
        below = os.open("a" * 20, os.O_RDONLY, dir_fd=current)
        os.close(current)
        current = below
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=current))
    os.close(current)
