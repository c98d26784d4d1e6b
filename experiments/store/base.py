"""What every store of files can do."""

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
class Kept:
    """What a row says of its file. ``path``: in the store; ``name``: for readers."""

    path: str
    size_bytes: int
    sha256: str
    name: str


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that somebody began to send and did not end."""

    path: str
    key: str
    begun_at: datetime


class Store(ABC):
    """Files of trials by their paths, which begin with ``trials/`` and the number of the trial."""

    is_here: ClassVar[bool]
    """Whether what a trial writes to its directory is in the store already."""

    @abstractmethod
    def place_of(self, trial_id: int) -> str:
        """Return where new files of a trial go."""

    @abstractmethod
    def held(self, kept: Kept) -> AbstractContextManager[Path]:
        """Hold a file as a file of this machine for as long as the block lasts, once its content is known to be right.

        Raise Tampered where it is not, NotPlain where no plain file is there, FileNotFoundError, or StoreAway.
        """

    @abstractmethod
    def pieces(self, path: str, first: int = 0, length: int | None = None) -> Iterator[bytes]:
        """Yield the bytes of a file from ``first`` on; memory stays bounded. Raise as ``size`` does."""

    @abstractmethod
    def size(self, path: str) -> int:
        """Return the length of a file. Raise FileNotFoundError, NotPlain, or StoreAway."""

    @abstractmethod
    def put(self, file: Path, path: str) -> None:
        """Keep a plain file of this machine under a path that is new. Raise NotPlain, OSError, or StoreAway."""

    @abstractmethod
    def remove(self, path: str) -> None:
        """Remove a file; one that is gone already is no error. Raise StoreAway."""

    @abstractmethod
    def remove_trial(self, trial_id: int) -> None:
        """Remove all files of a trial."""

    @abstractmethod
    def take_in(self, scratch: Path, taken: list[str]) -> None:
        """Keep what lies below ``scratch`` as it lies there below ``trials/``, and note in ``taken`` what `give_back` needs."""

    @abstractmethod
    def give_back(self, taken: list[str]) -> None:
        """Undo `take_in`, as far as it came."""


def place_within(path: str, trial_id: int) -> str:
    """Where a file lies among those of its trial, in whichever store."""
    parts = PurePosixPath(path).relative_to(TRIALS, str(trial_id)).parts
    return "/".join(parts[1:] if len(parts) > 1 and _UPLOAD.fullmatch(parts[0]) else parts)
