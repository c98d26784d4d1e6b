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

    def ask(self, what: str, /, *, path: str, most: int, skip: int, depth: int = ...) -> tuple[dict[str, Any], Any]: ...
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
    names = _names(agent, source, until_s)
    for name in [*names, *(_nested_names(agent, source, nested, until_s) if nested else ())]:
        _require_time(agent, until_s)
        there = str(source / name)
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        if (stated := agent.size(there)) > OUTPUT_LIMIT_BYTES:
            continue
        if (room := room - stated) < 0:
            raise TrialFailed(f"The files on host {agent.host} have more bytes than a trial may have on disk.")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(target / name, flags, 0o640), "wb") as stream:
            for part in agent.read(there, most=stated):
                _require_time(agent, until_s)
                stream.write(part)
    return room


def _require_time(agent: FileSource, until_s: float) -> None:
    if time.monotonic() >= until_s:
        raise TrialFailed(f"Host {agent.host} did not send the files of the trial in time.")


def _names(agent: FileSource, source: Path, until_s: float) -> list[str]:
    names: list[str] = []
    for page in _pages(agent, "files", source, until_s):
        names += page
        if len(names) > MOST_FILES:
            raise _too_many(agent)
        for name in page:
            if not is_file_name(name):
                raise TrialFailed(
                    f"Host {agent.host} sends a file under the name {str(name)[:80]!r}, which would be outside of the trial."
                )
    return names


def _nested_names(agent: FileSource, source: Path, patterns: Sequence[str], until_s: float) -> list[str]:
    """Return the nested names that match: other names were not requested."""
    chosen: list[str] = []
    for page in _pages(agent, "nested", source, until_s, depth=MOST_PARTS):
        names = (name for name in page if isinstance(name, str) and "/" in name and not _NO_BYTES.search(name))
        chosen += selected(patterns, names)
    return sorted(chosen)


def _pages(agent: FileSource, what: str, source: Path, until_s: float, **fields: int) -> Iterator[list[Any]]:
    """Yield the names that a host lists, as many at a time as one answer may have."""
    count, has_more = 0, True
    while has_more and count <= MOST_FILES:
        _require_time(agent, until_s)
        answer, _ = agent.ask(what, path=str(source), most=MOST_FILES + 1, skip=count, **fields)
        if not isinstance(page := answer.get("files"), list):
            raise _too_many(agent)
        yield page
        count += len(page)
        has_more = bool(page) and bool(answer.get("more"))


def _too_many(agent: FileSource) -> TrialFailed:
    return TrialFailed(f"Host {agent.host} names more files than the {MOST_FILES} that a run may write.")


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
