"""Regular expressions that people write: an engine whose time grows with the text and never explodes (RE2). Pure.

It knows no back-references and no look-around; whoever uses them is told so at the field.
"""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

import re2

MEMORY_LIMIT_BYTES: Final = 1 << 20
"""Of a compiled expression: it bounds the work for one character, so that a line of 10,000 takes a second at the very worst."""
TIME_LIMIT_S: Final = 10.0
"""For one text. Reading 16 MiB of ordinary results takes less."""
_NEEDS_MEMORY: Final = re.compile(r"\(\?(?:=|!|<=|<!|P=|\()|\\[1-9]")


@lru_cache(maxsize=256)
def compiled(pattern: str) -> Any:
    """Return the compiled expression, with ``groups``, ``finditer`` and ``fullmatch`` as in ``re``. Raise ValueError with a sentence."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MEMORY_LIMIT_BYTES
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise ValueError(f"the regular expression {pattern!r} cannot be read: {_reason(pattern, error)}") from None


def numbers_in(pattern: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield the first group of every match in every line. Raise ValueError where that takes too long."""
    search = compiled(pattern)
    deadline = time.monotonic() + TIME_LIMIT_S
    for line in lines:
        # One search takes a bounded time; many of them in one line may still take its square.
        for match in itertools.chain(search.finditer(line), (None,)):
            if match is not None and match[1] is not None:
                yield match[1]
            if time.monotonic() > deadline:
                raise ValueError(f"searching took longer than {TIME_LIMIT_S:g} s")


def first_line(pattern: str, lines: Iterable[str]) -> str | None:
    """Return the first line that holds a match; None where none does. Raise ValueError where that takes too long."""
    search = compiled(pattern)
    deadline = time.monotonic() + TIME_LIMIT_S
    for line in lines:
        if search.search(line):
            return line
        if time.monotonic() > deadline:
            raise ValueError(f"searching took longer than {TIME_LIMIT_S:g} s")
    return None


def _reason(pattern: str, error: Exception) -> str:
    said = error.args[0]
    reason = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
    if _NEEDS_MEMORY.search(pattern) and reason.startswith("invalid"):
        return "look-around (?=, ?!, ?<=, ?<!) and back-references are not allowed, because their search may never end"
    return reason
