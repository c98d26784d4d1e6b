"""Regular expressions of users, on an engine of linear time (RE2)."""

from __future__ import annotations

import itertools
import re
import time
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import re2

from experiments.common import budget
from experiments.workloads.outputs import Line, Text

MEMORY_LIMIT_BYTES: Final = 1 << 20
"""Limit of a compiled expression: it bounds the work for one character."""
TIME_LIMIT_S: Final = 10.0
"""For one text. Reading 16 MiB of ordinary results takes less."""
_MOST_STEPS: Final = 200_000_000
"""Instructions of an expression times characters of a line, of which one search takes at most a second."""
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
        reason = reason.removesuffix(f": {pattern}")
        if _NEEDS_MEMORY.search(pattern) and reason.startswith("invalid"):
            reason = "look-around (?=, ?!, ?<=, ?<!) and back-references are not allowed: their search may never end"
        raise ValueError(f"'{pattern}' is a regular expression that cannot be read: {reason}") from None


def search(pattern: str, text: Text) -> Iterator[tuple[Line, Any]]:
    """Yield every match in every line. Raise ValueError if that takes too long."""
    expression = compiled(pattern)
    deadline = text.deadline or time.monotonic() + TIME_LIMIT_S
    for line in text.lines:
        if len(line.text) * expression.programsize > _MOST_STEPS:
            raise ValueError(f"line {line.number} is too long to search: it has {len(line.text)} characters")
        # One search takes a bounded time; many of them in one line may take its square.
        for match in itertools.chain((None,), expression.finditer(line.text)):
            budget.check()
            if time.monotonic() > deadline:
                raise ValueError("searching took too long")
            if match is not None:
                yield line, match
