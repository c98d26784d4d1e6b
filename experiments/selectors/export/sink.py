"""A file without a place, for writers that want one while their bytes go on as they come."""

from __future__ import annotations

import io
from collections import deque
from typing import Any


class Sink(io.RawIOBase):
    """A file that holds what was written since it was last taken; one thread writes, another takes."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: deque[bytes] = deque()
        self._at = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def write(self, data: Any) -> int:
        part = bytes(data)
        self._parts.append(part)
        self._at += len(part)
        return len(part)

    def taken(self) -> bytes:
        return b"".join(self.parts())

    def parts(self) -> list[bytes]:
        """Return what was written, without another copy: the end of a Parquet file describes every part of it, and is long."""
        return [self._parts.popleft() for _ in range(len(self._parts))]
