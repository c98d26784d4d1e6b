"""Rows and files of trials held against each other: files that no row names, rows whose file is gone or was changed."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from django.conf import settings

from experiments.errors import NotPlain, Tampered
from experiments.models import UNFINISHED, Artifact, Trial
from experiments.pure import plain_files

SETTLED_S: Final = 3600.0
"""Younger files may belong to a row that is being written."""
FORGOTTEN_S: Final = 86_400.0
"""What belongs to nobody is removed only when nothing of it was written for so long."""


@dataclass(slots=True)
class Store:
    """What does not agree; all paths are below ``RANKWIRE_VAR``."""

    orphans: list[Path] = field(default_factory=list)
    """Files and directories that belong to no row."""
    missing: list[Artifact] = field(default_factory=list)
    resized: list[Artifact] = field(default_factory=list)
    """Of another size than the row says."""
    changed: list[Artifact] = field(default_factory=list)
    """No plain file, or, where hashes were compared, of another content."""

    def __len__(self) -> int:
        return len(self.orphans) + len(self.missing) + len(self.resized) + len(self.changed)


def check(*, hashes: bool = False) -> Store:
    """Return what of the stored trials does not agree. With ``hashes`` every file is read; trials that are not over are left alone."""
    store = Store(orphans=list(_orphans(Path(settings.VAR) / "trials", time.time() - SETTLED_S)))
    kept = Artifact.objects.filter(removed_at=None).exclude(trial__state__in=UNFINISHED).order_by("pk")
    for artifact in kept.iterator(chunk_size=1000):
        try:
            if _size(artifact.file) != artifact.size_bytes:
                store.resized.append(artifact)
            elif hashes:
                artifact.intact()
        except (Tampered, NotPlain):
            store.changed.append(artifact)
        except OSError:
            store.missing.append(artifact)
    return store


def delete_orphans(store: Store) -> list[Path]:
    """Delete what no row names and nobody wrote to for a day, and take it out of ``store``; return what that was."""
    forgotten = [path for path in store.orphans if _last_written(path) < time.time() - FORGOTTEN_S]
    for path in forgotten:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    store.orphans = [path for path in store.orphans if path not in forgotten]
    return forgotten


def _last_written(path: Path) -> float:
    """When something at this path was last written, or below it; links are not followed."""
    tree = () if path.is_symlink() else os.walk(path)
    below = (Path(above) / name for above, directories, names in tree for name in (*directories, *names))
    return max(each.lstat().st_mtime for each in (path, *below))


def _size(file: Path) -> int:
    with plain_files.opened(file) as stream:
        return stream.seek(0, 2)


def _orphans(trials: Path, before: float) -> Iterator[Path]:
    """Directories without a trial; of trials that are over, everything that no row names and that is not new."""
    if not trials.is_dir():
        return
    states = dict(Trial.objects.values_list("pk", "state"))
    for directory in sorted(trials.iterdir()):
        key = int(directory.name) if directory.name.isascii() and directory.name.isdecimal() else None
        if directory.lstat().st_mtime >= before:
            continue
        if key not in states or directory.is_symlink() or not directory.is_dir():
            yield directory
        elif states[key] not in UNFINISHED:
            named = set(Artifact.objects.filter(trial=key).values_list("path", flat=True))
            yield from (path for path in sorted(directory.iterdir()) if not _is_named(path, named))


def _is_named(path: Path, named: set[str]) -> bool:
    """Whether a row names this file, or one below this directory."""
    own = str(path.relative_to(settings.VAR))
    return own in named or any(each.startswith(f"{own}/") for each in named)
