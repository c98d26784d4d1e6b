"""Names of files that a run writes and a trial stores, and patterns of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Final

FILE_NAME: Final = r"^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}$"
"""Name of an input file: no slash, and no dot at its beginning."""
_WRITTEN_PART: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+:,=@~-]{0,99}")
"""Programs choose the names of the files that they write: CoMD puts the time of day into them."""
MOST_PARTS: Final = 8
MOST_READ_BYTES: Final = 64 << 20
"""Of all files together that a run wrote and its parser reads, which takes up to 16 times as much memory.

A table without its middle would be another one.
"""
_LONGEST: Final = 120
_PATTERN: Final = r"[A-Za-z0-9_*?\[][A-Za-z0-9_.+:,=@~*?\[\]-]{0,99}"
WRITTEN_PATTERN: Final = f"^{_PATTERN}(/{_PATTERN}){{0,{MOST_PARTS - 1}}}$"
_RESERVED: Final = re.compile(
    r"(?:stdout|stderr)\.txt|(?:samples|ranks|measured)\.json|(?:analysis|mpi-profile|counters)\.json\.zst|mpi-calls\.zst"
    r"|work|ranks|kept|capture.*"
)


def is_reserved(name: str) -> bool:
    """Return whether a trial stores a file or a directory of its own under this name."""
    return _RESERVED.fullmatch(name) is not None


def is_pattern(text: str) -> bool:
    """Return whether ``text`` is a shell pattern of paths in the working directory."""
    return re.fullmatch(WRITTEN_PATTERN, text) is not None


def has_wildcard(pattern: str) -> bool:
    """Return whether a pattern may match several files."""
    return any(sign in pattern for sign in "*?[")


def selected(patterns: Iterable[str], names: Iterable[str]) -> list[str]:
    """Return the storable names that match a pattern, sorted; a star matches no slash."""
    split = [pattern.split("/") for pattern in patterns]
    chosen = []
    for name in names:
        parts = name.split("/")
        is_storable = len(name) <= _LONGEST and not is_reserved(name) and all(map(_WRITTEN_PART.fullmatch, parts))
        if is_storable and any(len(one) == len(parts) and all(map(fnmatchcase, parts, one)) for one in split):
            chosen.append(name)
    return sorted(chosen)
