"""A file on its way here: written beside its place under another name, and put there only when it is whole."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from pathlib import Path

import httpx

from rankwire_client.errors import NotMade

_SHA256 = re.compile(r'"([0-9a-f]{64})"')


class Part:
    """What there is of a file so far. Raises OSError where nothing can be written."""

    def __init__(self, target: Path) -> None:
        if target.is_dir():
            raise IsADirectoryError(f"{target} is a directory: name a file")
        self.target = target
        self._etag = ""
        number, name = tempfile.mkstemp(prefix=".rankwire-", suffix=".part", dir=target.parent)
        os.close(number)
        self.path = Path(name)

    def headers(self) -> dict[str, str]:
        """What asks for the file, or for what is missing of it. Errors come as JSON all the same."""
        here = self.path.stat().st_size
        rest = {"Range": f"bytes={here}-", "If-Range": self._etag} if here and self._etag else {}
        return {"Accept": "*/*", **rest}

    def take(self, answer: httpx.Response) -> None:
        """Write what ``answer`` brings, as it comes. Raises httpx.TransportError where it breaks off."""
        goes_on = answer.status_code == 206
        self._etag = answer.headers.get("ETag", "")
        with self.path.open("ab" if goes_on else "wb") as stream:
            for piece in answer.iter_bytes():  # pieces as they come: what is here already need not come again
                stream.write(piece)

    def finish(self) -> Path:
        """Put it in its place, with the access that a new file of this person has.

        Raises NotMade where the content is not what the server has the hash of.
        """
        hashed = _SHA256.fullmatch(self._etag)
        if hashed is not None:
            with self.path.open("rb") as stream:
                if hashlib.file_digest(stream, "sha256").hexdigest() != hashed[1]:
                    raise NotMade(f"{self.target.name} did not arrive as the server has it: its hash is another one")
        mask = os.umask(0)
        os.umask(mask)
        self.path.chmod(0o666 & ~mask)
        return self.path.replace(self.target)

    def abandon(self) -> None:
        """Remove it where it was not finished."""
        self.path.unlink(missing_ok=True)
