"""Secrets that an installation makes for itself, in files that only their owner can read."""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from pathlib import Path


def read_or_create_secret(path: Path, *, length_bytes: int = 48) -> str:
    """The secret in `path` (mode 0600), made on first use.

    Two processes may start together: the file appears complete by a hard link, and who comes second reads the first's.
    """
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        pass
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")  # mkstemp makes it 0600
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(secrets.token_urlsafe(length_bytes) + "\n")
        with contextlib.suppress(FileExistsError):
            os.link(name, path)
    finally:
        Path(name).unlink()
    return path.read_text().strip()
