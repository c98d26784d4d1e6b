"""A host that says what it likes of the files of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any


class StrangeHost:
    """Hostile agent: `files` by name, `names` that it lists, other `answers`."""

    host = "node7"

    def __init__(
        self, files: Mapping[str, Sequence[bytes]], names: Sequence[Any] | None = None, answers: str = "files"
    ) -> None:
        self._answers = answers
        self._files = files
        self._names = list(files if names is None else names)

    def ask(self, what: str, /, **fields: Any) -> tuple[dict[str, Any], bytes]:
        assert what in ("files", "nested")
        return {"files": self._names if what == self._answers else []}, b""

    def size(self, path: str) -> int:
        return len(self._content(path)[0])

    def read(self, path: str) -> Iterator[bytes]:
        yield from self._content(path)

    def _content(self, path: str) -> Sequence[bytes]:
        return self._files[next(name for name in self._files if path.endswith(PurePosixPath(name).name))]
