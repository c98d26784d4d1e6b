"""Files of trials in the local directory where the trials write them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from django.conf import settings

from experiments.common import plain_files, trees
from experiments.store.base import TRIALS, Store, StoredFile
from experiments.store.digest import PIECE, require_unchanged


class Directory(Store):
    """The directory ``RANKWIRE_VAR``."""

    is_here: ClassVar[bool] = True

    def place_of(self, trial_id: int) -> str:
        return f"{TRIALS}/{trial_id}"

    @contextmanager
    def held(self, stored: StoredFile) -> Iterator[Path]:
        file = self._file(stored.path)
        require_unchanged(file, stored)
        yield file

    def pieces(self, path: str, first: int = 0, length: int | None = None) -> Iterator[bytes]:
        with plain_files.opened(self._file(path)) as stream:
            stream.seek(first)
            remaining = length
            while piece := stream.read(PIECE if remaining is None else min(remaining, PIECE)):
                remaining = None if remaining is None else remaining - len(piece)
                yield piece

    def size(self, path: str) -> int:
        with plain_files.opened(self._file(path)) as stream:
            return stream.seek(0, 2)

    def put(self, file: Path, path: str) -> None:
        target = self._file(path)
        if file == target:
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        with plain_files.opened(file) as source, target.open("xb") as copy:
            shutil.copyfileobj(source, copy, PIECE)

    def remove(self, path: str) -> None:
        self._file(path).unlink(missing_ok=True)

    def remove_trial(self, trial_id: int) -> None:
        trees.remove(self._file(self.place_of(trial_id)))

    def take_in(self, scratch: Path, taken: list[str]) -> None:
        # `scratch` is on the same file system.
        for directory in sorted(scratch.iterdir()):
            target = self._file(f"{TRIALS}/{directory.name}")
            trees.remove(target)  # of a transaction that was never committed
            directory.rename(target)
            taken.append(str(target))

    def give_back(self, taken: list[str]) -> None:
        for directory in taken:
            plain_files.discard(Path(directory))

    def _file(self, path: str) -> Path:
        return Path(settings.VAR) / path
