"""Telling how far long work is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from analysis.numbers import amount

EVERY_S: Final = 5.0


class Progress:
    """Tells a line at the beginning, every few seconds, and at the end, however much there is to do."""

    def __init__(self, tell: Callable[[str], object], what: str, *, files: int, size_bytes: int) -> None:
        self._tell, self._what = tell, what
        self._files, self._bytes = files, size_bytes
        self._done_files = self._done_bytes = 0
        self._last = time.monotonic()
        self._tell(f"{what}: {files} files, {amount(size_bytes, 'B')}")

    def add(self, size_bytes: int) -> None:
        """Count one more file."""
        self._done_files += 1
        self._done_bytes += size_bytes
        if time.monotonic() - self._last >= EVERY_S:
            self._last = time.monotonic()
            done = f"{self._done_files} of {self._files} files, {amount(self._done_bytes, 'B')}"
            self._tell(f"{self._what}: {done} of {amount(self._bytes, 'B')}")
