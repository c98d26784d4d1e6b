"""Interface of file stores."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import ClassVar, Final

TRIALS: Final = "trials"
_UPLOAD: Final = re.compile(r"upload-[0-9a-f]{12}", re.ASCII)


@dataclass(frozen=True, slots=True)
class StoredFile:
    """The stored file of a row: ``path`` in the store, ``name`` for users."""

    path: str
    size_bytes: int
    sha256: str
    name: str


@dataclass(frozen=True, slots=True)
class Upload:
    """An unfinished upload."""

    path: str
    key: str
    begun_at: datetime


class Store(ABC):
    """Files of trials by path, ``trials/`` and the number of the trial first."""

    is_here: ClassVar[bool]
    """True if the store is the directory to which trials write."""

    @abstractmethod
    def place_of(self, trial_id: int) -> str:
        """Return the directory of new files of a trial."""

    @abstractmethod
    def held(self, stored: StoredFile) -> AbstractContextManager[Path]:
        """Provide a verified file as a local path for the block.

        Raise Tampered, NotPlain, FileNotFoundError or StoreUnavailable.
        """

    @abstractmethod
    def pieces(self, path: str, first: int = 0, length: int | None = None) -> Iterator[bytes]:
        """Yield the bytes of a file from ``first`` on. Raise as ``size``."""

    @abstractmethod
    def size(self, path: str) -> int:
        """Return a file's length. Raise FileNotFoundError, NotPlain, StoreUnavailable."""

    @abstractmethod
    def put(self, file: Path, path: str) -> None:
        """Store a local file at a new path. Raise NotPlain, OSError, StoreUnavailable."""

    @abstractmethod
    def remove(self, path: str) -> None:
        """Remove a file, if it exists. Raise StoreUnavailable."""

    @abstractmethod
    def remove_trial(self, trial_id: int) -> None:
        """Remove all files of a trial. Raise StoreUnavailable, OSError."""

    @abstractmethod
    def take_in(self, scratch: Path, taken: list[str]) -> None:
        """Store the files below ``scratch`` below ``trials/``; list them in ``taken``."""

    @abstractmethod
    def give_back(self, taken: list[str]) -> None:
        """Undo `take_in`, also an incomplete one."""


def place_within(path: str, trial_id: int) -> str:
    """Return the path of a file within its trial, in any store."""
    parts = PurePosixPath(path).relative_to(TRIALS, str(trial_id)).parts
    return "/".join(parts[1:] if len(parts) > 1 and _UPLOAD.fullmatch(parts[0]) else parts)
