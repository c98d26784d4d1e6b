"""Files that a run wrote, which its workload parses and stores.

They are found by name and pattern. Only plain files: patterns skip links, and a link in place of a named file is an
error.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from analysis.numbers import size
from experiments.common import plain_files, trees
from experiments.errors import NotPlain
from experiments.workloads.kept_files import MOST_PARTS, MOST_READ_BYTES, has_wildcard, selected
from workers.errors import TrialFailed

MOST_KEPT: Final = 50
"""Files that patterns keep of one trial."""
HOLES_LIMIT_BYTES: Final = 256 << 20
"""Of all files together that are stored: a second to hash them."""
KEPT: Final = "kept"
"""Directory of a trial for files of subdirectories."""
_MOST_LOOKED_AT: Final = 100_000


def names_of(work: Path, patterns: Sequence[str]) -> list[str]:
    """Return files of the patterns, without a wildcard first. Raise NotPlain."""
    plain = [name for name in patterns if "/" not in name and not has_wildcard(name)]
    there = [name for name in plain if plain_files.is_there(work / name)]
    others = [pattern for pattern in patterns if pattern not in plain]
    return [*there, *(name for name in _matching(work, others) if name not in there)]


def texts_of(work: Path, patterns: Sequence[str]) -> dict[str, str]:
    """Return texts of these files by name. Raise NotPlain, also if too long."""
    texts: dict[str, str] = {}
    room = MOST_READ_BYTES
    for name in names_of(work, patterns):
        texts[name] = plain_files.read_text(work / name, limit_bytes=room)
        room -= (work / name).stat().st_size
    return texts


def require_room(files: Sequence[Path], *, limit_bytes: int) -> None:
    """Raise TrialFailed if files to store are too long together or mostly holes.

    `limit_bytes`: of a trial on disk. Holes take no disk, so the limit of a run does not see them; hashing and
    downloading read them as bytes.
    """
    length = sum(file.lstat().st_size for file in files)
    if length > limit_bytes:
        raise TrialFailed(
            f"The files that it keeps are {size(length)} long together, more than the {size(limit_bytes)} that a trial may have on disk."
        )
    room = HOLES_LIMIT_BYTES
    for file in files:
        room -= _holes_bytes(file, room)
        if room < 0:
            raise TrialFailed(
                f"{file.name} is {size(file.lstat().st_size)} long, but mostly empty: the files that a trial keeps may have "
                f"{size(HOLES_LIMIT_BYTES)} of holes together. Write it without gaps, or do not keep it."
            )


def keep(work: Path, name: str, directory: Path) -> Path:
    """Move a file out of the scratch directory; return its new path."""
    target = directory / KEPT / name if "/" in name else directory / name
    target.parent.mkdir(parents=True, exist_ok=True)
    return plain_files.move(work / name, target)


def name_in(file: Path, directory: Path) -> str:
    """Return the stored name of a file in this trial's directory."""
    subdirectories = directory / KEPT
    return str(file.relative_to(subdirectories)) if file.is_relative_to(subdirectories) else file.name


def _holes_bytes(file: Path, limit_bytes: int) -> int:
    """Return the bytes of a file's holes, counted up to a limit. Raise NotPlain."""
    with plain_files.opened(file) as stream:
        end = os.fstat(stream.fileno()).st_size
        data = holes = 0
        while data < end and holes <= limit_bytes:
            hole = os.lseek(stream.fileno(), data, os.SEEK_HOLE)
            try:
                data = os.lseek(stream.fileno(), hole, os.SEEK_DATA)
            except OSError:  # ENXIO: no data up to the end
                data = end
            holes += data - hole
    return holes


def _matching(work: Path, patterns: Sequence[str]) -> list[str]:
    if not patterns:
        return []
    if work.is_symlink():
        raise NotPlain(f"{work.name} is no longer a directory")
    return selected(patterns, _plain_names(work))[:MOST_KEPT]


def _plain_names(work: Path) -> Iterator[str]:
    """Yield the plain files of a directory and below, without following links."""
    for count, entry in enumerate(trees.walk(work, levels=MOST_PARTS)):
        if count >= _MOST_LOOKED_AT:
            return
        if entry.is_file:
            yield "/".join((*entry.above, entry.name))
