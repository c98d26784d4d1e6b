"""Files of trials in a bucket, with a local cache of bounded size.

No path is written twice: each delivery has its own directory, so that a worker given up for dead cannot overwrite another's files.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from django.conf import settings

from experiments.errors import StoreUnavailable, Tampered
from experiments.store.base import TRIALS, Store, StoredFile
from experiments.store.cache import Cache
from experiments.store.digest import changed, require_unchanged

if TYPE_CHECKING:
    from experiments.store.s3 import S3


class Bucket(Store):
    """A bucket of a server that speaks S3."""

    is_here: ClassVar[bool] = False

    def __init__(self, storage: S3, cache: Cache) -> None:
        self._storage = storage
        self._cache = cache
        self.below, self.unfinished, self.end = storage.below, storage.unfinished, storage.end

    @classmethod
    def of(cls, storage: Any) -> Self:
        """Return the bucket with this machine's cache."""
        return cls(storage, Cache(Path(settings.VAR) / "store-cache", settings.STORE_CACHE_BYTES))

    def place_of(self, trial_id: int) -> str:
        return f"{TRIALS}/{trial_id}/upload-{secrets.token_hex(6)}"

    @contextmanager
    def held(self, stored: StoredFile) -> Iterator[Path]:
        with self._cache.held(stored, self._fetched(stored)) as file:
            try:
                require_unchanged(file, stored)
            except Tampered:
                # The cached copy is damaged.
                self._cache.forget(stored)
                raise
            yield file

    def _fetched(self, stored: StoredFile) -> Iterator[bytes]:
        """Yield the bytes of a file. Raise Tampered at the end if they have changed."""
        digest, size_bytes = hashlib.sha256(), 0
        for piece in self.pieces(stored.path):
            digest.update(piece)
            size_bytes += len(piece)
            if size_bytes > stored.size_bytes:
                break
            yield piece
        if size_bytes != stored.size_bytes or digest.hexdigest() != stored.sha256:
            raise changed(stored)

    def pieces(self, path: str, first: int = 0, length: int | None = None) -> Iterator[bytes]:
        return self._storage.read(path, first, length)

    def size(self, path: str) -> int:
        return self._storage.length(path)

    def put(self, file: Path, path: str) -> None:
        self._storage.put(file, path)
        there, here = self._storage.length(path), file.stat().st_size
        if there != here:
            raise StoreUnavailable(f"the store of files took {there} of {here} bytes")

    def remove(self, path: str) -> None:
        self._storage.remove(path)

    def remove_trial(self, trial_id: int) -> None:
        for path, _, _ in list(self._storage.below(f"{TRIALS}/{trial_id}")):
            self._storage.remove(path)

    def take_in(self, scratch: Path, taken: list[str]) -> None:
        for file in sorted(path for path in scratch.rglob("*") if path.is_file()):
            path = f"{TRIALS}/{file.relative_to(scratch).as_posix()}"
            taken.append(path)
            self.put(file, path)

    def give_back(self, taken: list[str]) -> None:
        with suppress(StoreUnavailable):  # `store check` finds the remaining files
            for path in taken:
                self._storage.remove(path)

    def hash_of(self, path: str) -> str:
        """Return the SHA-256 of a file, without a copy."""
        digest = hashlib.sha256()
        for piece in self.pieces(path):
            digest.update(piece)
        return digest.hexdigest()
