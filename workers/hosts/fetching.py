"""Fetching a run's files from hosts, whose names and sizes are not trusted."""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from experiments.workloads.kept_files import MOST_PARTS, selected
from workers.errors import TrialFailed

OUTPUT_LIMIT_BYTES: Final = 256 << 20
"""Of one file that a run wrote; a larger one stays on its host."""
MOST_FILES: Final = 100_000
_LONGEST_NAME: Final = 255
"""Bytes that Linux allows a file's name."""


_NO_BYTES: Final = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""Halves of characters that JSON can write and no file's name has."""


class FileSource(Protocol):
    """The part of an agent that fetching needs."""

    host: str

    def ask(self, what: str, /, *, path: str, depth: int = ..., most: int = ...) -> tuple[dict[str, Any], Any]: ...
    def size(self, path: str) -> int: ...
    def read(self, path: str, *, most: int) -> Iterator[bytes]: ...


def fetch(
    agent: FileSource,
    source: Path,
    target: Path,
    *,
    deep: Sequence[str] = (),
    room: int = OUTPUT_LIMIT_BYTES,
    until_s: float = math.inf,
) -> int:
    """Copy the files in `source` on a host to `target`, until a monotonic time.

    Return the rest of ``room`` bytes. Nested files are copied if they match `deep`. Raises TrialFailed for an invalid name, too many
    bytes or too much time, and OSError.
    """
    target.mkdir(parents=True, exist_ok=True)
    nested = [pattern for pattern in deep if "/" in pattern]
    for name in [*_names(agent, source), *(_nested_names(agent, source, nested) if nested else ())]:
        if time.monotonic() >= until_s:
            raise TrialFailed(f"Host {agent.host} did not send the files of the trial in time.")
        there = str(source / name)
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        if (stated := agent.size(there)) > OUTPUT_LIMIT_BYTES:
            continue
        if (room := room - stated) < 0:
            raise TrialFailed(f"The files on host {agent.host} have more bytes than a trial may have on disk.")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(target / name, flags, 0o640), "wb") as stream:
            for part in agent.read(there, most=stated):
                stream.write(part)
    return room


def _names(agent: FileSource, source: Path) -> list[str]:
    names = agent.ask("files", path=str(source))[0]["files"]
    if not isinstance(names, list) or len(names) > MOST_FILES:
        raise TrialFailed(f"Host {agent.host} names more files than the {MOST_FILES} that a run may write.")
    for name in names:
        if not is_file_name(name):
            raise TrialFailed(
                f"Host {agent.host} sends a file under the name {str(name)[:80]!r}, which would be outside of the trial."
            )
    return names


def _nested_names(agent: FileSource, source: Path, patterns: Sequence[str]) -> list[str]:
    """Return the nested names that match: other names were not requested."""
    names = agent.ask("nested", path=str(source), depth=MOST_PARTS, most=MOST_FILES)[0]["files"]
    if not isinstance(names, list):
        return []
    return selected(patterns, (n for n in names if isinstance(n, str) and "/" in n and not _NO_BYTES.search(n)))


def is_file_name(name: Any) -> bool:
    """Return whether ``name`` names one entry of a directory and nothing else."""
    return (
        isinstance(name, str)
        and name not in ("", ".", "..")
        and "/" not in name
        and "\0" not in name
        and not _NO_BYTES.search(name)
        and len(name.encode(errors="surrogateescape")) <= _LONGEST_NAME
    )
