"""Generated secrets of an installation, in files that only their owner can read."""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from pathlib import Path


def read_or_create_secret(path: Path, *, length_bytes: int = 48) -> str:
    """Return the secret in `path` (mode 0600); create it at first use.

    A hard link creates the complete file, so that concurrent processes read the same secret.
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
