"""Parts of files (RFC 9110, section 14): a download that broke off goes on where it ended."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final

from django.http import FileResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from dashboard.api.protocol.errors import refusal, whole

_ONE: Final = re.compile(r"bytes=(?:([0-9]{1,18})-([0-9]{1,18})?|-([0-9]{1,18}))", re.ASCII)
_PIECE: Final = 64 * 1024
_KEPT: Final = ("Content-Type", "Content-Disposition", "ETag", "Accept-Ranges")


class Part:
    """Bytes of a file from where it stands, as a stream that closes it."""

    def __init__(self, file: IO[bytes], length: int) -> None:
        self._file, self._left = file, length

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        piece = self._file.read(min(self._left, _PIECE)) if self._left else b""
        if not piece:
            raise StopIteration
        self._left -= len(piece)
        return piece

    def close(self) -> None:
        self._file.close()


def download(request: Any, file: Path, name: str, etag: str = "") -> HttpResponseBase:
    """Return a file to be kept as ``name``: the whole (200), the part that was asked for (206), or that it has none such (416).

    Several parts at once, other units, and a part of what was another file (``If-Range``) are answered with the whole, as the RFC allows.
    """
    opened = file.open("rb")
    response = FileResponse(opened, as_attachment=True, filename=name)
    response["Accept-Ranges"] = "bytes"
    if etag:
        response["ETag"] = etag
    asked = _ONE.fullmatch("".join(request.headers.get("Range", "").split()).lower())
    if asked is None or request.headers.get("If-Range", etag) != etag:
        return response
    size = int(response["Content-Length"])
    first, last = _bounds(asked, size)
    if first >= size or last < first:
        response.close()
        refused = refusal(416, [whole(f"the file has {size} bytes")])
        refused["Content-Range"] = f"bytes */{size}"
        return refused
    opened.seek(first)
    headers = {name: response[name] for name in _KEPT if name in response}
    headers |= {"Content-Range": f"bytes {first}-{last}/{size}", "Content-Length": str(last - first + 1)}
    return StreamingHttpResponse(Part(opened, last - first + 1), status=206, headers=headers)


def _bounds(asked: re.Match[str], size: int) -> tuple[int, int]:
    first, last, final = asked.groups()
    if final is not None:  # so many at the end
        return (max(size - int(final), 0), size - 1) if int(final) else (size, size)
    return int(first), min(int(last), size - 1) if last is not None else size - 1
