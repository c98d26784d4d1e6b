"""Names of files that a run writes and a trial reads and keeps, and the patterns that people write for them. Pure.

A name is a path in the working directory of the trial, its parts set apart by slashes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Final

FILE_NAME: Final = r"^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}$"
"""Of an input file: no slash, and no dot at its beginning."""
_WRITTEN_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+:,=@~-]{0,99}")
"""Of each part of the path of a file that a program writes. Programs choose these names: CoMD puts the time of day into its own."""
MOST_PARTS: Final = 8
_LONGEST: Final = 120
_PATTERN: Final = r"[A-Za-z0-9_*?\[][A-Za-z0-9_.+:,=@~*?\[\]-]{0,99}"
WRITTEN_PATTERN: Final = f"^{_PATTERN}(/{_PATTERN}){{0,{MOST_PARTS - 1}}}$"
_RESERVED: Final = re.compile(
    r"(?:stdout|stderr)\.txt|(?:samples|ranks|measured)\.json|(?:analysis|mpi-profile)\.json\.zst|work|ranks|kept|capture.*"
)


def is_reserved(name: str) -> bool:
    """Return whether a trial keeps a file or a directory of its own under this name, beside what its program reads and writes."""
    return _RESERVED.fullmatch(name) is not None


def is_kept_name(name: str) -> bool:
    """Return whether a file of this name can be kept."""
    parts = name.split("/")
    return (
        len(parts) <= MOST_PARTS
        and len(name) <= _LONGEST
        and all(_WRITTEN_NAME.fullmatch(part) for part in parts)
        and not is_reserved(name)
    )


def is_pattern(text: str) -> bool:
    """Return whether ``text`` is a pattern: as of a shell, part by part, and never out of the working directory."""
    return re.fullmatch(WRITTEN_PATTERN, text) is not None


def has_wildcard(pattern: str) -> bool:
    """Return whether a pattern may stand for several files."""
    return any(sign in pattern for sign in "*?[")


def selects(pattern: str, name: str) -> bool:
    """Return whether ``name`` is one that ``pattern`` stands for: a star stands for no slash."""
    wanted, parts = pattern.split("/"), name.split("/")
    return len(wanted) == len(parts) and all(map(fnmatchcase, parts, wanted))


def selected(patterns: Iterable[str], names: Iterable[str]) -> list[str]:
    """Return the names that can be kept and that one of the patterns stands for, in order."""
    wanted = list(patterns)
    return sorted(name for name in names if is_kept_name(name) and any(selects(each, name) for each in wanted))
