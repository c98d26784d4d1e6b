"""Downloads with byte ranges (RFC 9110, section 14)."""

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
"""Files of a bucket up to this size are verified before the first byte is sent."""
_KEPT: Final = ("Content-Type", "Content-Disposition", "ETag", "Accept-Ranges")

log = structlog.get_logger()


def _part(file: IO[bytes], length: int) -> Iterator[bytes]:
    with file:
        while length and (piece := file.read(min(length, _PIECE))):
            length -= len(piece)
            yield piece


def artifact(request: Any, row: Artifact, name: str) -> HttpResponseBase:
    """Return a verified artifact. Raise what ``Artifact.intact`` raises.

    A large file of a bucket is streamed: a wrong hash aborts it before its end, and of a part only the file's size is verified.
    """
    etag, backend = f'"{row.sha256}"', store.current()
    if backend.is_here or row.size_bytes <= _FETCHED_FIRST:
        with row.intact() as file:
            return download(request, file, name, etag)
    if backend.size(row.path) != row.size_bytes:
        raise Tampered(f"{row.name} was changed after its trial ended: its size differs. It is stored but not used.")
    headers = {
        "Content-Type": "application/octet-stream",
        "Content-Disposition": content_disposition_header(True, name) or "attachment",
        "Content-Length": str(row.size_bytes),
        "Accept-Ranges": "bytes",
        "ETag": etag,
    }
    match = _requested_part(request, etag)
    if match is None:
        return StreamingHttpResponse(_checked(backend.pieces(row.path), row), headers=headers)
    first, last, part_headers = _bounds(match, row.size_bytes)
    if not part_headers:
        return _outside(row.size_bytes)
    part = backend.pieces(row.path, first, last - first + 1)
    return StreamingHttpResponse(part, status=206, headers=headers | part_headers)


def _checked(pieces: Iterator[bytes], row: Artifact) -> Iterator[bytes]:
    """Yield the pieces, the last one only after the hash is verified. Raise Tampered."""
    digest, waiting = hashlib.sha256(), b""
    for piece in pieces:
        if waiting:
            yield waiting
        waiting = piece
        digest.update(piece)
    if digest.hexdigest() != row.sha256:
        log.error("file_changed", path=row.path)
        raise Tampered(f"{row.name} was changed after its trial ended: its hash differs.")
    yield waiting


def download(request: Any, file: Path, name: str, etag: str = "") -> HttpResponseBase:
    """Return a file for download: the whole (200), a part (206), or 416.

    Several parts, other units, and parts of another version (``If-Range``) get the whole file, as the RFC allows.
    """
    opened = file.open("rb")
    response = FileResponse(opened, as_attachment=True, filename=name)
    response["Accept-Ranges"] = "bytes"
    if etag:
        response["ETag"] = etag
    match = _requested_part(request, etag)
    if match is None:
        return response
    size = int(response["Content-Length"])
    first, last, part_headers = _bounds(match, size)
    if not part_headers:
        response.close()
        return _outside(size)
    opened.seek(first)
    headers = {name: response[name] for name in _KEPT if name in response} | part_headers
    part = StreamingHttpResponse(_part(opened, last - first + 1), status=206, headers=headers)
    # Also if no byte is read, as for HEAD.
    part._resource_closers.append(opened.close)  # type: ignore[attr-defined]
    return part


def _requested_part(request: Any, etag: str) -> re.Match[str] | None:
    match = _ONE.fullmatch("".join(request.headers.get("Range", "").split()).lower())
    return None if request.headers.get("If-Range", etag) != etag else match


def _outside(size: int) -> HttpResponseBase:
    refused = refusal(416, [whole(f"the file has {size} bytes")])
    refused["Content-Range"] = f"bytes */{size}"
    return refused


def _bounds(match: re.Match[str], size: int) -> tuple[int, int, dict[str, str]]:
    """Return first and last byte and headers, empty for invalid ranges."""
    first_text, last_text, count_text = match.groups()
    first = int(first_text) if count_text is None else max(size - int(count_text), 0)
    last = min(int(last_text), size - 1) if last_text is not None else size - 1
    if last < first:
        return first, last, {}
    return first, last, {"Content-Range": f"bytes {first}-{last}/{size}", "Content-Length": str(last - first + 1)}
