"""Regular expressions of users, on an engine of linear time (RE2)."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import re2

MEMORY_LIMIT_BYTES: Final = 1 << 20
"""Limit of a compiled expression: it bounds the work for one character; a line of 10,000 takes at most a second."""
TIME_LIMIT_S: Final = 10.0
"""For one text. Reading 16 MiB of ordinary results takes less."""
MAX_LINE: Final = 10_000
"""Characters of a line that are searched; results are in short ones."""
_NEEDS_MEMORY: Final = re.compile(r"\(\?(?:=|!|<=|<!|P=|\()|\\[1-9]")


@lru_cache(maxsize=256)
def compiled(pattern: str) -> Any:
    """Return the compiled expression, with the methods of ``re``. Raise ValueError."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MEMORY_LIMIT_BYTES
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        message = error.args[0]
        reason = message.decode(errors="replace") if isinstance(message, bytes) else str(message)
        if _NEEDS_MEMORY.search(pattern) and reason.startswith("invalid"):
            reason = "look-around (?=, ?!, ?<=, ?<!) and back-references are not allowed: their search may never end"
        raise ValueError(f"the regular expression {pattern!r} cannot be read: {reason}") from None


def matches(pattern: str, text: str) -> Iterator[Any]:
    """Yield every match in every line. Raise ValueError if that takes too long."""
    search = compiled(pattern)
    deadline = time.monotonic() + TIME_LIMIT_S
    for line in text.splitlines():
        # One search takes a bounded time; many of them in one line may take its square.
        for match in itertools.chain(search.finditer(line[:MAX_LINE]), (None,)):
            if match is not None:
                yield match
            if time.monotonic() > deadline:
                raise ValueError(f"searching took longer than {TIME_LIMIT_S:g} s")
