"""A file on its way here: written beside its place under another name, and put there only when it is whole."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import httpx

_PIECE = 1 << 20
HEADERS = {"Accept": "*/*"}
"""What asks for a file: errors come as JSON all the same."""


class Part:
    """What there is of a file so far. Raises OSError where nothing can be written."""

    def __init__(self, target: Path) -> None:
        if target.is_dir():
            raise IsADirectoryError(f"{target} is a directory: name a file")
        self.target = target
        number, name = tempfile.mkstemp(prefix=".rankwire-", suffix=".part", dir=target.parent)
        os.close(number)
        self.path = Path(name)

    def take(self, answer: httpx.Response) -> None:
        """Write what ``answer`` brings, as it comes, from the start. Raises httpx.TransportError where it breaks off."""
        with self.path.open("wb") as stream:
            for piece in answer.iter_bytes(_PIECE):
                stream.write(piece)

    def finish(self) -> Path:
        """Put it in its place, with the access that a new file of this person has."""
        mask = os.umask(0)
        os.umask(mask)
        self.path.chmod(0o666 & ~mask)
        return self.path.replace(self.target)

    def abandon(self) -> None:
        """Remove it where it was not finished."""
        self.path.unlink(missing_ok=True)
