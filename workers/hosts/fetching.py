"""Bringing the files of a run over from its hosts. What a host names and sends is a stranger's word: nothing of it leaves the directory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Protocol

from workers.errors import TrialFailed

OUTPUT_LIMIT_BYTES: Final = 256 << 20
"""Of one file that a run wrote; a larger one stays on its host."""
MOST_FILES: Final = 100_000
_LONGEST_NAME: Final = 255
"""Bytes that Linux allows a file's name."""


class Source(Protocol):
    """A keeper, as far as fetching needs it."""

    host: str

    def ask(self, what: str, /, *, path: str) -> tuple[dict[str, Any], Any]: ...
    def size(self, path: str) -> int: ...
    def read(self, path: str) -> Iterator[bytes]: ...


def fetch(keeper: Source, source: Path, target: Path) -> None:
    """Copy the files that lie in `source` of a host to `target`. Raises TrialFailed for a name that is no file's, OSError."""
    target.mkdir(parents=True, exist_ok=True)
    for name in _names(keeper, source):
        there = str(source / name)
        if keeper.size(there) > OUTPUT_LIMIT_BYTES:
            continue
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(target / name, flags, 0o640), "wb") as stream:
            room = OUTPUT_LIMIT_BYTES
            for part in keeper.read(there):
                if (room := room - len(part)) < 0:
                    raise TrialFailed(f"Host {keeper.host} sends more of {name} than it said there was.")
                stream.write(part)


def _names(keeper: Source, source: Path) -> list[str]:
    names = keeper.ask("files", path=str(source))[0]["files"]
    if not isinstance(names, list) or len(names) > MOST_FILES:
        raise TrialFailed(f"Host {keeper.host} names more files than the {MOST_FILES} that a run may write.")
    for name in names:
        if not is_file_name(name):
            raise TrialFailed(
                f"Host {keeper.host} sends a file under the name {str(name)[:80]!r}, which would lie outside of the trial."
            )
    return names


def is_file_name(name: Any) -> bool:
    """Return whether ``name`` names one entry of a directory and nothing else."""
    return (
        isinstance(name, str)
        and name not in ("", ".", "..")
        and "/" not in name
        and "\0" not in name
        and len(name.encode(errors="surrogateescape")) <= _LONGEST_NAME
    )
