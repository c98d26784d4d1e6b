"""Hashes of files, cached per version of a file."""

from __future__ import annotations

import functools
import hashlib
import os
from pathlib import Path
from typing import Final

from experiments.common import plain_files
from experiments.errors import Tampered
from experiments.store.base import StoredFile

PIECE: Final = 1 << 20


def hash_of(file: Path) -> tuple[str, int]:
    """Return the SHA-256 and the length of a plain file."""
    digest = hashlib.sha256()
    with plain_files.opened(file) as stream:
        while piece := stream.read(PIECE):
            digest.update(piece)
        return digest.hexdigest(), stream.tell()


def require_unchanged(file: Path, stored: StoredFile) -> None:
    """Raise Tampered if a file has changed, NotPlain or OSError if it cannot be read."""
    with plain_files.opened(file) as stream:
        status = os.fstat(stream.fileno())
    version = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    if status.st_size != stored.size_bytes or _digest(file, version) != stored.sha256:
        raise changed(stored)


def changed(stored: StoredFile) -> Tampered:
    """Return the error of a changed file."""
    return Tampered(f"{stored.name} was changed after its trial ended: its hash differs. It is not used.")


@functools.lru_cache(maxsize=1024)
def _digest(file: Path, _version: tuple[int, ...]) -> str:
    """Return the hash of this version: any change alters ctime or inode."""
    return hash_of(file)[0]
