"""How a backup lies on disk, and whether it still is what was written.

database.dump     pg_dump's own format
files/trials/...  the files of trials, by the paths that the database names
settings.env      what was set, without secrets
secrets/          the secret key and other secrets, only where they were asked for
SHA256SUMS        the hash of each of these files; `sha256sum -c` reads it
backup.json       what it is of, the hash of SHA256SUMS, and its own hash
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Final

from analysis.numbers import amount
from config.backup.errors import ChangedBackup, KeepingError
from experiments.common import plain_files
from experiments.errors import NotPlain

FORMAT: Final = 1
DATABASE, FILES, SETTINGS, SECRETS = "database.dump", "files", "settings.env", "secrets"
SUMS, ABOUT = "SHA256SUMS", "backup.json"
NAME_PREFIX: Final = "rankwire-"
PART_PREFIX: Final = ".part-"
_PIECE: Final = 1 << 20
_PROGRESS_S: Final = 5.0
_CANNOT_SYNC: Final = (errno.EINVAL, errno.EOPNOTSUPP)
"""Some file systems of networks cannot be asked."""


class Progress:
    """Tells a line at the beginning and every few seconds, however much there is to do."""

    def __init__(self, tell: Callable[[str], object], what: str, *, files: int, size_bytes: int) -> None:
        self._tell, self._what = tell, what
        self._files, self._bytes = files, size_bytes
        self._done_files = self._done_bytes = 0
        self._last = time.monotonic()
        self._tell(f"{what}: {files} files, {amount(size_bytes, 'B')}")

    def add(self, size_bytes: int) -> None:
        """Count one more file."""
        self._done_files += 1
        self._done_bytes += size_bytes
        if time.monotonic() - self._last >= _PROGRESS_S:
            self._last = time.monotonic()
            done = f"{self._done_files} of {self._files} files, {amount(self._done_bytes, 'B')}"
            self._tell(f"{self._what}: {done} of {amount(self._bytes, 'B')}")


@dataclass(frozen=True, slots=True)
class Stored:
    """A file that the database names: its path below the var directory, its length and hash."""

    path: str
    size_bytes: int
    sha256: str

    def checked(self) -> Stored:
        """The same. Raise KeepingError where its path leads elsewhere than to the files of trials."""
        parts = PurePosixPath(self.path).parts
        if len(parts) < 3 or parts[0] != "trials" or {"..", "."} & set(parts):
            raise KeepingError(f"the database names a file that is none of a trial: {self.path!r}")
        return self


@dataclass(frozen=True, slots=True)
class About:
    """What a backup is of. ``migrations``: the last one of each app. ``damaged``: paths that were taken as they were."""

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
        """As the last file: a directory that has it is whole."""
        values = asdict(self)
        write_new(
            directory / ABOUT, json.dumps({**values, "sha256": _hash_of(values)}, indent=1, sort_keys=True) + "\n"
        )

    @classmethod
    def read(cls, directory: Path) -> About:
        """Raise KeepingError where `directory` holds no whole backup, ChangedBackup where this file was changed."""
        try:
            values = json.loads((directory / ABOUT).read_text())
            sealed = values.pop("sha256")
        except FileNotFoundError:
            raise KeepingError(f"{directory} holds no whole backup: {ABOUT} is missing") from None
        except (OSError, ValueError, KeyError, AttributeError):
            raise ChangedBackup(f"{directory / ABOUT} was changed, or cannot be read") from None
        if values.get("format") != FORMAT:
            raise KeepingError(f"{directory} is a backup of format {values.get('format')}; this version reads {FORMAT}")
        if _hash_of(values) != sealed:
            raise ChangedBackup(f"{directory / ABOUT} was changed")
        return cls(**values)


def _hash_of(values: dict[str, object]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def whole_backups(above: Path) -> list[Path]:
    """The whole backups below a directory, oldest first."""
    return sorted(path.parent for path in above.glob(f"{NAME_PREFIX}*/{ABOUT}"))


def write_new(file: Path, text: str) -> None:
    """A new file that only its owner can read."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
        stream.write(text)


def hash_file(file: Path, *, from_disk: bool = False) -> tuple[str, int]:
    """The SHA-256 and the length of a plain file. Raise NotPlain, OSError.

    ``from_disk``: what was written before is read back, not what the kernel still remembers of it.
    """
    digest = hashlib.sha256()
    with plain_files.opened(file) as stream:
        if from_disk:
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        while piece := stream.read(_PIECE):
            digest.update(piece)
        return digest.hexdigest(), stream.tell()


def copy_pieces(pieces: Iterable[bytes], target: Path) -> tuple[str, int]:
    """Write the pieces of a file to a new one; return the SHA-256 and the length of what was written. Raise OSError."""
    digest, size_bytes, left = hashlib.sha256(), 0, iter(pieces)
    first = next(left, b"")  # nothing is made where there is nothing to copy
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, plain_files.FILE_MODE)
    with os.fdopen(descriptor, "wb") as copy:
        for piece in chain([first], left):
            digest.update(piece)
            size_bytes += copy.write(piece)
    return digest.hexdigest(), size_bytes


def copy_file(file: Path, target: Path) -> tuple[str, int]:
    """Copy a plain file to a new one; return the SHA-256 and the length of what was copied. Raise NotPlain, OSError."""
    with plain_files.opened(file) as source:
        return copy_pieces(iter(lambda: source.read(_PIECE), b""), target)


def write_sums(directory: Path, sums: Iterable[tuple[str, str]]) -> str:
    """Write the list of (hash, path); return the hash of the list."""
    lines = []
    for digest, path in sums:
        escaped = path.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
        lines.append(f"{'' if escaped == path else chr(92)}{digest}  {escaped}\n")
    write_new(directory / SUMS, "".join(lines))
    return hash_file(directory / SUMS)[0]


def read_sums(directory: Path) -> dict[str, str]:
    """Path -> hash of every file of a backup."""
    sums = {}
    for line in (directory / SUMS).read_bytes().decode().split("\n")[:-1]:
        digest, _, path = line.lstrip("\\").partition("  ")
        if line.startswith("\\"):
            path = path.replace("\\\\", "\0").replace("\\n", "\n").replace("\\r", "\r").replace("\0", "\\")
        sums[path] = digest
    return sums


def verify(directory: Path, about: About, progress: Progress | None = None) -> dict[str, str]:
    """Read everything of a backup; return path -> hash. Raise ChangedBackup with the name of what is not as it was written."""
    try:
        if hash_file(directory / SUMS)[0] != about.sums:
            raise ChangedBackup(f"{directory / SUMS} was changed")
    except (OSError, NotPlain):
        raise ChangedBackup(f"{directory / SUMS} is missing, or cannot be read") from None
    sums = read_sums(directory)
    for path in _files_below(directory):
        if path not in sums and path not in (SUMS, ABOUT):
            raise ChangedBackup(f"{directory / path} was added to the backup")
    for path, expected in sums.items():
        file = directory / path
        try:
            digest, size_bytes = hash_file(file, from_disk=True)
        except FileNotFoundError:
            raise ChangedBackup(f"{file} is missing") from None
        except (OSError, NotPlain) as error:
            raise ChangedBackup(f"{file} cannot be read: {error}") from None
        if digest != expected:
            raise ChangedBackup(f"{file} was changed")
        if progress is not None:
            progress.add(size_bytes)
    return sums


def _files_below(directory: Path) -> Iterator[str]:
    for above, _directories, names in os.walk(directory):
        for name in names:
            yield str((Path(above) / name).relative_to(directory))


def sync_tree(directory: Path) -> None:
    """Wait until every file below ``directory``, and every name, is on the disk. Raise OSError where one could not be written."""
    with ThreadPoolExecutor(8) as pool:  # a journal commits what waits for it together
        for above, _directories, names in os.walk(directory, topdown=False):
            files = (path for name in names if stat.S_ISREG((path := Path(above) / name).lstat().st_mode))
            list(pool.map(sync, files))
            sync(Path(above))


def sync(path: Path) -> None:
    """Wait until a file, or the names in a directory, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise
    finally:
        os.close(descriptor)
