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
from experiments.errors import StoreAway
from experiments.store.base import Kept


@dataclass(frozen=True, slots=True)
class Cache:
    """A directory and its size limit."""

    directory: Path
    limit_bytes: int

    @contextmanager
    def held(self, kept: Kept, pieces: Iterator[bytes]) -> Iterator[Path]:
        """Hold the copy of a file for a block; read ``pieces`` if there is none."""
        place = self._place(kept)
        stream = self._opened(place) or self._fetch(kept, place, pieces)
        with stream:
            yield place

    def forget(self, kept: Kept) -> None:
        """Remove a damaged copy."""
        self._place(kept).unlink(missing_ok=True)

    def _place(self, kept: Kept) -> Path:
        return self.directory / kept.sha256 / Path(kept.path).name

    def _opened(self, place: Path) -> IO[bytes] | None:
        try:
            stream = place.open("rb")
        except FileNotFoundError:
            return None
        fcntl.flock(stream, fcntl.LOCK_SH)
        if not os.fstat(stream.fileno()).st_nlink:  # removed before it was locked
            stream.close()
            return None
        with suppress(OSError):
            os.utime(place.parent)  # of the directory: a new time of the file would mark it as changed
        return stream

    def _fetch(self, kept: Kept, place: Path, pieces: Iterator[bytes]) -> IO[bytes]:
        part = self._part(kept)
        try:
            for piece in pieces:
                part.write(piece)
            part.flush()
            fcntl.flock(part, fcntl.LOCK_SH)
            _move(Path(part.name), place)
        except BaseException:
            Path(part.name).unlink(missing_ok=True)
            part.close()
            raise
        return part

    def _part(self, kept: Kept) -> IO[bytes]:
        """Return a locked part file, after making room for it."""
        with plain_files.private():
            self.directory.mkdir(parents=True, exist_ok=True)
            with (self.directory / ".lock").open("ab") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                self._make_room(kept)
                part = (self.directory / f".part-{secrets.token_hex(8)}").open("xb")
                fcntl.flock(part, fcntl.LOCK_EX)
                if kept.size_bytes:
                    os.posix_fallocate(part.fileno(), 0, kept.size_bytes)
                return part

    def _make_room(self, kept: Kept) -> None:
        if kept.size_bytes > self.limit_bytes:
            raise StoreAway(
                f"{kept.name} has {size(kept.size_bytes)}, more than this machine keeps of the store (RANKWIRE_STORE_CACHE_MIB)"
            )
        copies = sorted(self._copies())
        used = sum(size_bytes for _, size_bytes, _ in copies)
        for _, size_bytes, place in copies:
            if used + kept.size_bytes <= self.limit_bytes:
                return
            if _removed(place):
                used -= size_bytes
        if used + kept.size_bytes > self.limit_bytes:
            raise StoreAway(f"files in use leave no room for {kept.name}; try again later")

    def _copies(self) -> Iterator[tuple[float, int, Path]]:
        """Yield (last use, length, path) of all copies, dead parts first."""
        for entry in self.directory.iterdir():
            with suppress(OSError):
                if entry.name.startswith(".part-"):
                    yield 0.0, entry.stat().st_size, entry
                elif entry.is_dir():
                    for place in list(entry.iterdir()):
                        yield entry.stat().st_mtime, place.stat().st_size, place


def _move(part: Path, place: Path) -> None:
    """Move a copy into place; another process may remove the directory meanwhile."""
    with plain_files.private():
        for again in (True, True, False):
            place.parent.mkdir(exist_ok=True)
            try:
                part.rename(place)
                return
            except FileNotFoundError:
                if not again:
                    raise


def _removed(place: Path) -> bool:
    """Remove an unlocked copy; return whether it is gone."""
    try:
        stream = place.open("rb")
    except FileNotFoundError:
        return True
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        place.unlink(missing_ok=True)
    with suppress(OSError):
        place.parent.rmdir()
    return True
