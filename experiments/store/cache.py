"""Local copies of files of a bucket, by hash; the least recently used are removed.

A file in use has a shared lock, and only unlocked ones are removed. A download counts with its full length from the start, so that
several processes together stay within the limit.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from analysis.numbers import size
from experiments.common import plain_files
from experiments.errors import StoreUnavailable
from experiments.store.base import StoredFile


@dataclass(frozen=True, slots=True)
class Cache:
    """A directory and its size limit."""

    directory: Path
    limit_bytes: int

    @contextmanager
    def held(self, stored: StoredFile, pieces: Iterator[bytes]) -> Iterator[Path]:
        """Hold the copy of a file for a block; read ``pieces`` if there is none."""
        path = self._path(stored)
        stream = self._opened(path) or self._fetch(stored, path, pieces)
        with stream:
            yield path

    def forget(self, stored: StoredFile) -> None:
        """Remove a damaged copy."""
        self._path(stored).unlink(missing_ok=True)

    def _path(self, stored: StoredFile) -> Path:
        return self.directory / stored.sha256 / Path(stored.path).name

    def _opened(self, path: Path) -> IO[bytes] | None:
        try:
            stream = path.open("rb")
        except FileNotFoundError:
            return None
        fcntl.flock(stream, fcntl.LOCK_SH)
        if not os.fstat(stream.fileno()).st_nlink:  # removed before it was locked
            stream.close()
            return None
        with suppress(OSError):
            os.utime(path.parent)  # of the directory: a new time of the file would mark it as changed
        return stream

    def _fetch(self, stored: StoredFile, path: Path, pieces: Iterator[bytes]) -> IO[bytes]:
        part = self._part(stored)
        try:
            for piece in pieces:
                part.write(piece)
            part.flush()
            fcntl.flock(part, fcntl.LOCK_SH)
            _move(Path(part.name), path)
        except BaseException:
            Path(part.name).unlink(missing_ok=True)
            part.close()
            raise
        return part

    def _part(self, stored: StoredFile) -> IO[bytes]:
        """Return a locked part file, after making room for it."""
        with plain_files.private():
            self.directory.mkdir(parents=True, exist_ok=True)
            with (self.directory / ".lock").open("ab") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                self._make_room(stored)
                part = (self.directory / f".part-{secrets.token_hex(8)}").open("xb")
                fcntl.flock(part, fcntl.LOCK_EX)
                if stored.size_bytes:
                    os.posix_fallocate(part.fileno(), 0, stored.size_bytes)
                return part

    def _make_room(self, stored: StoredFile) -> None:
        if stored.size_bytes > self.limit_bytes:
            raise StoreUnavailable(
                f"{stored.name} has {size(stored.size_bytes)}, more than this machine keeps of the store (RANKWIRE_STORE_CACHE_MIB)"
            )
        copies = sorted(self._copies())
        used = sum(size_bytes for _, size_bytes, _ in copies)
        for _, size_bytes, path in copies:
            if used + stored.size_bytes <= self.limit_bytes:
                return
            if _removed(path):
                used -= size_bytes
        if used + stored.size_bytes > self.limit_bytes:
            raise StoreUnavailable(f"files in use leave no room for {stored.name}; try again later")

    def _copies(self) -> Iterator[tuple[float, int, Path]]:
        """Yield (last use, length, path) of all copies, dead parts first."""
        for entry in self.directory.iterdir():
            with suppress(OSError):
                if entry.name.startswith(".part-"):
                    yield 0.0, entry.stat().st_size, entry
                elif entry.is_dir():
                    for path in list(entry.iterdir()):
                        yield entry.stat().st_mtime, path.stat().st_size, path


def _move(part: Path, path: Path) -> None:
    """Move a copy into place; another process may remove the directory meanwhile."""
    with plain_files.private():
        for again in (True, True, False):
            path.parent.mkdir(exist_ok=True)
            try:
                part.rename(path)
                return
            except FileNotFoundError:
                if not again:
                    raise


def _removed(path: Path) -> bool:
    """Remove an unlocked copy; return whether it is gone."""
    try:
        stream = path.open("rb")
    except FileNotFoundError:
        return True
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        path.unlink(missing_ok=True)
    with suppress(OSError):
        path.parent.rmdir()
    return True
