"""Parts of files (RFC 9110, section 14): a download that broke off goes on where it ended."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final

import structlog
from django.http import FileResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.http import content_disposition_header

from dashboard.requests.problems import refusal, whole
from experiments import store
from experiments.errors import Tampered
from experiments.models import Artifact

_ONE: Final = re.compile(r"bytes=(?:([0-9]{1,18})-([0-9]{1,18})?|-([0-9]{1,18}))", re.ASCII)
_PIECE: Final = 64 * 1024
_FETCHED_FIRST: Final = 64 << 20
"""Files of a bucket up to this length are fetched and checked as a whole before their first byte leaves."""
_KEPT: Final = ("Content-Type", "Content-Disposition", "ETag", "Accept-Ranges")

log = structlog.get_logger()


def _part(file: IO[bytes], length: int) -> Iterator[bytes]:
    with file:
        while length and (piece := file.read(min(length, _PIECE))):
            length -= len(piece)
            yield piece


def artifact(request: Any, kept: Artifact, name: str) -> HttpResponseBase:
    """Return a stored file as ``download`` does, once it is known to be what its trial left. Raise what ``Artifact.intact`` raises.

    A large one of a bucket is passed on while it is read: then the whole breaks off before its end where its hash turns out to be
    another one, and of a part only the length of the whole is known to be right.
    """
    etag, own = f'"{kept.sha256}"', store.current()
    if own.is_here or kept.size_bytes <= _FETCHED_FIRST:
        with kept.intact() as file:
            return download(request, file, name, etag)
    if own.size(kept.path) != kept.size_bytes:
        raise Tampered(
            f"{kept.name} was changed after its trial ended: it is of another length. It is kept, but not used."
        )
    headers = {
        "Content-Type": "application/octet-stream",
        "Content-Disposition": content_disposition_header(True, name) or "attachment",
        "Content-Length": str(kept.size_bytes),
        "Accept-Ranges": "bytes",
        "ETag": etag,
    }
    asked = _asked(request, etag)
    if asked is None:
        return StreamingHttpResponse(_checked(own.pieces(kept.path), kept), headers=headers)
    first, last, part_headers = _bounds(asked, kept.size_bytes)
    if not part_headers:
        return _outside(kept.size_bytes)
    part = own.pieces(kept.path, first, last - first + 1)
    return StreamingHttpResponse(part, status=206, headers=headers | part_headers)


def _checked(pieces: Iterator[bytes], kept: Artifact) -> Iterator[bytes]:
    """The pieces, of which the last one is held back until the hash of all is known to be right."""
    digest, waiting = hashlib.sha256(), b""
    for piece in pieces:
        if waiting:
            yield waiting
        waiting = piece
        digest.update(piece)
    if digest.hexdigest() != kept.sha256:
        log.error("file_changed", path=kept.path)
        raise Tampered(f"{kept.name} was changed after its trial ended: its hash is another one.")
    yield waiting


def download(request: Any, file: Path, name: str, etag: str = "") -> HttpResponseBase:
    """Return a file to be kept as ``name``: the whole (200), the part that was asked for (206), or that it has none such (416).

    Several parts at once, other units, and a part of what was another file (``If-Range``) are answered with the whole, as the RFC allows.
    """
    opened = file.open("rb")
    response = FileResponse(opened, as_attachment=True, filename=name)
    response["Accept-Ranges"] = "bytes"
    if etag:
        response["ETag"] = etag
    asked = _asked(request, etag)
    if asked is None:
        return response
    size = int(response["Content-Length"])
    first, last, part_headers = _bounds(asked, size)
    if not part_headers:
        response.close()
        return _outside(size)
    opened.seek(first)
    headers = {name: response[name] for name in _KEPT if name in response} | part_headers
    return StreamingHttpResponse(_part(opened, last - first + 1), status=206, headers=headers)


def _asked(request: Any, etag: str) -> re.Match[str] | None:
    asked = _ONE.fullmatch("".join(request.headers.get("Range", "").split()).lower())
    return None if request.headers.get("If-Range", etag) != etag else asked


def _outside(size: int) -> HttpResponseBase:
    refused = refusal(416, [whole(f"the file has {size} bytes")])
    refused["Content-Range"] = f"bytes */{size}"
    return refused


def _bounds(asked: re.Match[str], size: int) -> tuple[int, int, dict[str, str]]:
    """Return the first and last byte of a part with its headers, which are empty if the file has no such bytes."""
    first_text, last_text, count_text = asked.groups()
    first = int(first_text) if count_text is None else max(size - int(count_text), 0)
    last = min(int(last_text), size - 1) if last_text is not None else size - 1
    if last < first:
        return first, last, {}
    return first, last, {"Content-Range": f"bytes {first}-{last}/{size}", "Content-Length": str(last - first + 1)}
