"""Layout and verification of a backup on disk.

database.dump     dump in pg_dump's custom format
files/trials/...  artifacts, at the paths of the database
settings.env      settings without secrets
secrets/          the secret key and other secrets, only with `--secrets`
SHA256SUMS        the hash of each of these files, for `sha256sum -c`
backup.json       description, hash of SHA256SUMS and of itself
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Final

from analysis.numbers import amount
from config.backup.errors import BackupError, ChangedBackup
from experiments.common import plain_files, trees
from experiments.errors import NotPlain

FORMAT: Final = 1
DATABASE, FILES, SETTINGS, SECRETS = "database.dump", "files", "settings.env", "secrets"
SUMS, ABOUT = "SHA256SUMS", "backup.json"
NAME_PREFIX: Final = "rankwire-"
PART_PREFIX: Final = ".part-"
_PIECE: Final = 1 << 20
_PROGRESS_S: Final = 5.0
_CANNOT_SYNC: Final = (errno.EINVAL, errno.EOPNOTSUPP)
"""Errors of network file systems without fsync."""


class Progress:
    """Reports progress at the start and every few seconds."""

    def __init__(self, report: Callable[[str], object], what: str, *, files: int, size_bytes: int) -> None:
        self._report, self._what = report, what
        self._files, self._bytes = files, size_bytes
        self._done_files = self._done_bytes = 0
        self._last = time.monotonic()
        self._report(f"{what}: {files} files, {amount(size_bytes, 'B')}")

    def add(self, size_bytes: int) -> None:
        """Count one more file."""
        self._done_files += 1
        self._done_bytes += size_bytes
        if time.monotonic() - self._last >= _PROGRESS_S:
            self._last = time.monotonic()
            done = f"{self._done_files} of {self._files} files, {amount(self._done_bytes, 'B')}"
            self._report(f"{self._what}: {done} of {amount(self._bytes, 'B')}")


@dataclass(frozen=True, slots=True)
class Stored:
    """A row of an artifact: path below the var directory, size and hash."""

    path: str
    size_bytes: int
    sha256: str

    def validated(self) -> Stored:
        """Return the same object. Raise BackupError for a path outside of trials."""
        parts = PurePosixPath(self.path).parts
        if len(parts) < 3 or parts[0] != "trials" or {"..", "."} & set(parts):
            raise BackupError(f"the database lists an artifact outside of trials: {self.path!r}")
        return self


@dataclass(frozen=True, slots=True)
class About:
    """Description of a backup; ``migrations`` has the last one of each app."""

    made_at: str
    installation: str
    postgresql: str
    database_bytes: int
    migrations: dict[str, str]
    files: int
    file_bytes: int
    active_trials: int
    secrets: bool
    damaged: list[str] = field(default_factory=list)
    sums: str = ""
    format: int = FORMAT

    def write(self, directory: Path) -> None:
        """Write `backup.json` as the last file: it marks a complete backup."""
        values = asdict(self)
        write_new(
            directory / ABOUT, json.dumps({**values, "sha256": _hash_of(values)}, indent=1, sort_keys=True) + "\n"
        )

    @classmethod
    def read(cls, directory: Path) -> About:
        """Read `backup.json`. Raise BackupError or ChangedBackup."""
        try:
            values = json.loads((directory / ABOUT).read_text())
            digest = values.pop("sha256")
        except FileNotFoundError:
            raise BackupError(f"{directory} is not a complete backup: {ABOUT} is missing") from None
        except (OSError, ValueError, KeyError, AttributeError):
            raise ChangedBackup(f"{directory / ABOUT} was changed or is not readable") from None
        if values.get("format") != FORMAT:
            raise BackupError(f"{directory} is a backup of format {values.get('format')}; this version reads {FORMAT}")
        if _hash_of(values) != digest:
            raise ChangedBackup(f"{directory / ABOUT} was changed")
        return cls(**values)


def _hash_of(values: dict[str, object]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def complete_backups(above: Path) -> list[Path]:
    """Return the complete backups below a directory, oldest first."""
    return sorted(path.parent for path in above.glob(f"{NAME_PREFIX}*/{ABOUT}"))


def write_new(file: Path, text: str) -> None:
    """Write a new file that only its owner can read."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        stream.write(text)


def hash_file(file: Path, *, from_disk: bool = False) -> tuple[str, int]:
    """Return SHA-256 and size in bytes of a plain file. Raise NotPlain, OSError.

    ``from_disk`` bypasses the page cache, to verify what the disk has stored.
    """
    digest = hashlib.sha256()
    with plain_files.opened(file) as stream:
        if from_disk:
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        while piece := stream.read(_PIECE):
            digest.update(piece)
        return digest.hexdigest(), stream.tell()


def copy_pieces(pieces: Iterable[bytes], target: Path) -> tuple[str, int]:
    """Write pieces to a new file; return its SHA-256 and size in bytes. Raise OSError."""
    digest, size_bytes, remaining = hashlib.sha256(), 0, iter(pieces)
    first = next(remaining, b"")  # raises before the target exists
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, plain_files.FILE_MODE)
    with os.fdopen(descriptor, "wb") as copy:
        for piece in chain([first], remaining):
            digest.update(piece)
            size_bytes += copy.write(piece)
    return digest.hexdigest(), size_bytes


def copy_file(file: Path, target: Path) -> tuple[str, int]:
    """Copy a plain file; return SHA-256 and size in bytes. Raise NotPlain, OSError."""
    with plain_files.opened(file) as source:
        return copy_pieces(iter(lambda: source.read(_PIECE), b""), target)


def write_sums(directory: Path, sums: Iterable[tuple[str, str]]) -> str:
    """Write SHA256SUMS from (hash, path); return its hash."""
    lines = []
    for digest, path in sums:
        escaped = path.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
        lines.append(f"{'' if escaped == path else chr(92)}{digest}  {escaped}\n")
    write_new(directory / SUMS, "".join(lines))
    return hash_file(directory / SUMS)[0]


def read_sums(directory: Path) -> dict[str, str]:
    """Return path -> hash of the files of a backup."""
    sums = {}
    for line in (directory / SUMS).read_bytes().decode().split("\n")[:-1]:
        digest, _, path = line.lstrip("\\").partition("  ")
        if line.startswith("\\"):
            path = path.replace("\\\\", "\0").replace("\\n", "\n").replace("\\r", "\r").replace("\0", "\\")
        sums[path] = digest
    return sums


def verify(directory: Path, about: About, progress: Progress | None = None) -> dict[str, str]:
    """Read all files of a backup; return path -> hash. Raise ChangedBackup."""
    try:
        if hash_file(directory / SUMS)[0] != about.sums:
            raise ChangedBackup(f"{directory / SUMS} was changed")
    except (OSError, NotPlain):
        raise ChangedBackup(f"{directory / SUMS} is missing or not readable") from None
    sums = read_sums(directory)
    for entry in trees.walk(directory):
        path = "/".join((*entry.above, entry.name))
        if not entry.is_directory and path not in sums and path not in (SUMS, ABOUT):
            raise ChangedBackup(f"{directory / path} was added to the backup")
    for path, expected in sums.items():
        file = directory / path
        try:
            digest, size_bytes = hash_file(file, from_disk=True)
        except FileNotFoundError:
            raise ChangedBackup(f"{file} is missing") from None
        except (OSError, NotPlain) as error:
            raise ChangedBackup(f"{file} is not readable: {error}") from None
        if digest != expected:
            raise ChangedBackup(f"{file} was changed")
        if progress is not None:
            progress.add(size_bytes)
    return sums


def sync_tree(directory: Path) -> None:
    """Flush all files and directories below ``directory`` to disk. Raise OSError."""
    files: list[Path] = []
    directories: list[Path] = []
    for entry in trees.walk(directory, leaves_first=True):
        if entry.is_directory or entry.is_file:
            (directories if entry.is_directory else files).append(Path(directory, *entry.above, entry.name))
    with ThreadPoolExecutor(8) as pool:  # a journal commits concurrent requests together
        list(pool.map(sync, files))
    for path in (*directories, directory):
        sync(path)


def sync(path: Path) -> None:
    """Flush a file, or the entries of a directory, to disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise
    finally:
        os.close(descriptor)
