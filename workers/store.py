"""Comparison of rows and files of trials: unnamed, missing, changed files."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePath, PurePosixPath
from typing import Final, NamedTuple

from django.conf import settings
from django.db.models.functions import Collate

from experiments import store as kept_in
from experiments.common import plain_files, trees
from experiments.errors import NotPlain, Tampered
from experiments.models import UNFINISHED, Artifact, Deleted, Trial
from experiments.store.base import Upload

SETTLED_S: Final = 3600.0
"""Younger files may belong to a row that is being written."""
FORGOTTEN_S: Final = 86_400.0
"""Orphans are removed only after so long without a write."""


@dataclass(slots=True)
class StoreDifferences:
    """Differences; all paths are below ``RANKWIRE_VAR``, or in the bucket."""

    orphans: list[PurePath] = field(default_factory=list)
    """Files and directories that belong to no row."""
    missing: list[Artifact] = field(default_factory=list)
    resized: list[Artifact] = field(default_factory=list)
    """Files whose size differs from the row."""
    changed: list[Artifact] = field(default_factory=list)
    """Other than plain files, or, if hashes were compared, changed content."""
    unfinished: list[Upload] = field(default_factory=list)
    """Uploads to the bucket without progress for an hour: the bucket keeps their parts."""

    def __len__(self) -> int:
        rows = len(self.missing) + len(self.resized) + len(self.changed)
        return rows + len(self.orphans) + len(self.unfinished)


class _Pair(NamedTuple):
    """A path with what the bucket has there and what row names it; either may be None."""

    path: str
    size_bytes: int | None
    stored_at: datetime | None
    artifact: Artifact | None


def check(*, hashes: bool = False) -> StoreDifferences:
    """Return the differences of stored trials; with ``hashes`` every file is read.

    Unfinished trials are left out. Raise StoreUnavailable.
    """
    current_store = kept_in.current()
    if isinstance(current_store, kept_in.Bucket):
        return _check_bucket(current_store, hashes=hashes)
    store = StoreDifferences(orphans=list(_orphans(Path(settings.VAR) / "trials", time.time() - SETTLED_S)))
    artifacts = Artifact.objects.filter(removed_at=None).exclude(trial__state__in=UNFINISHED).order_by("pk")
    for artifact in artifacts.iterator(chunk_size=1000):
        try:
            if _size(artifact.file) != artifact.size_bytes:
                store.resized.append(artifact)
            elif hashes:
                with artifact.intact():
                    pass
        except (Tampered, NotPlain):
            store.changed.append(artifact)
        except OSError:
            store.missing.append(artifact)
    return store


def delete_orphans(store: StoreDifferences) -> list[PurePath]:
    """Delete orphans older than a day; return them, removed from ``store``."""
    current_store = kept_in.current()
    if isinstance(current_store, kept_in.Bucket):
        return _delete_from_bucket(current_store, store)
    old = (path for path in map(Path, store.orphans) if _last_written(path) < time.time() - FORGOTTEN_S)
    places = [path for path in old if plain_files.discard(path)]
    store.orphans = [path for path in store.orphans if path not in places]
    return list(places)


def _check_bucket(bucket: kept_in.Bucket, *, hashes: bool) -> StoreDifferences:
    store, before = StoreDifferences(), datetime.now(UTC) - timedelta(seconds=SETTLED_S)
    unfinished = set(Trial.objects.unfinished().values_list("pk", flat=True))
    left_alone = unfinished | _deleted()
    for path, size_bytes, stored_at, artifact in _pairs(bucket):
        if artifact is None:
            if stored_at is not None and stored_at < before and _trial_of(path) not in left_alone:
                store.orphans.append(PurePosixPath(path))
        elif artifact.removed_at is not None or artifact.trial_id in unfinished:
            continue
        elif size_bytes is None:
            store.missing.append(artifact)
        elif size_bytes != artifact.size_bytes:
            store.resized.append(artifact)
        elif hashes and bucket.hash_of(path) != artifact.sha256:
            store.changed.append(artifact)
    store.unfinished = [upload for upload in bucket.unfinished() if upload.begun_at < before]
    return store


def _delete_from_bucket(bucket: kept_in.Bucket, store: StoreDifferences) -> list[PurePath]:
    before = datetime.now(UTC) - timedelta(seconds=FORGOTTEN_S)
    old = {PurePosixPath(path) for path, _, stored_at in bucket.below(kept_in.TRIALS) if stored_at < before}
    forgotten = [path for path in store.orphans if path in old]
    for path in forgotten:
        bucket.remove(str(path))
    ended = [upload for upload in store.unfinished if upload.begun_at < before]
    for upload in ended:
        bucket.end(upload)
    store.orphans = [path for path in store.orphans if path not in forgotten]
    store.unfinished = [upload for upload in store.unfinished if upload not in ended]
    return [*forgotten, *(PurePosixPath(upload.path) for upload in ended)]


def _trial_of(path: str) -> int | None:
    number = PurePosixPath(path).parts[1]
    return int(number) if number.isascii() and number.isdecimal() else None


def _deleted() -> set[int]:
    """Return the trials of experiments in the trash, whose files are needed."""
    return {number for numbers in Deleted.objects.values_list("trials", flat=True) for number in numbers}


def _last_written(path: Path) -> float:
    """Return the last write at or below this path; links are not followed."""
    below = trees.walk(path) if path.is_dir() and not path.is_symlink() else ()
    return max(path.lstat().st_mtime, max((entry.status.st_mtime for entry in below), default=0.0))


def _size(file: Path) -> int:
    with plain_files.opened(file) as stream:
        return stream.seek(0, 2)


def _orphans(trials: Path, before: float) -> Iterator[Path]:
    """Yield directories without a trial, and old unnamed files of finished trials."""
    if not trials.is_dir():
        return
    states, deleted = dict(Trial.objects.values_list("pk", "state")), _deleted()
    for directory in sorted(trials.iterdir()):
        key = int(directory.name) if directory.name.isascii() and directory.name.isdecimal() else None
        if directory.lstat().st_mtime >= before or key in deleted:
            continue
        if key not in states or directory.is_symlink() or not directory.is_dir():
            yield directory
        elif states[key] not in UNFINISHED:
            named = set(Artifact.objects.filter(trial=key).values_list("path", flat=True))
            yield from (path for path in sorted(directory.iterdir()) if not _is_named(path, named))


def _is_named(path: Path, named: set[str]) -> bool:
    """Return whether a row names this file, or one below this directory."""
    name = str(path.relative_to(settings.VAR))
    return name in named or any(other.startswith(f"{name}/") for other in named)


def _pairs(bucket: kept_in.Bucket) -> Iterator[_Pair]:
    """Yield every path that the bucket or a row has, in order."""
    # As bytes, which is the order in which a bucket lists; Python compares code points, in the same order.
    rows = Artifact.objects.select_related("trial").only(
        *("path", "size_bytes", "sha256", "name", "kind", "removed_at", "trial__state")
    )
    named = rows.order_by(Collate("path", "C")).iterator(chunk_size=1000)
    there = bucket.below(kept_in.TRIALS)
    row, stored = next(named, None), next(there, None)
    while row is not None or stored is not None:
        if stored is not None and (row is None or stored[0] < row.path):
            yield _Pair(*stored, None)
            stored = next(there, None)
        elif row is not None and (stored is None or row.path < stored[0]):
            yield _Pair(row.path, None, None, row)
            row = next(named, None)
        elif row is not None and stored is not None:
            yield _Pair(*stored, row)
            row, stored = next(named, None), next(there, None)
