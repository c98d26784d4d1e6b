"""A file without a place, for writers that want one while their bytes go on as they come."""

from __future__ import annotations

import io
from typing import Any


class Sink(io.RawIOBase):
    """A file that only remembers what was written since it was last taken."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []
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
        """What was written, without another copy of it: the end of a Parquet file tells of every part of it, and is long."""
        parts, self._parts = self._parts, []
        return parts
