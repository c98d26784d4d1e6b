"""Untrusted bundles: zip archives or directories, checked before they are read.

Names that lead out of the bundle, links, encrypted members, archives with far more in them than their size allows and members that
their list does not name are refused before a byte is unpacked; unpacked files are compared with their hashes while they are read.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final, Protocol

from experiments.common import plain_files, trees
from experiments.common.storable import is_storable_text
from experiments.errors import BadBundle

MANIFEST: Final = "manifest-sha256.txt"
MOST_FILES: Final = 200_000
MOST_TIMES: Final = 200
"""Largest ratio of contents to archive: tables of numbers shrink to a fiftieth."""
ALWAYS_BYTES: Final = 64 << 20
"""Contents that any archive may have."""
MOST_BYTES: Final = 1 << 40
JSON_BYTES: Final = 64 << 20
_LIST_BYTES: Final = MOST_FILES * 200
_LONGEST_NAME: Final = 400
_PIECE: Final = 1 << 20
_END, _END64, _LOCATOR64 = 22, 56, 20
"""Bytes of the records that end an archive (PKWARE APPNOTE 4.3.14 to 4.3.16)."""


class Container(Protocol):
    """A source of the files of a bundle."""

    sizes: dict[str, int]

    def open(self, name: str) -> Any: ...

    def close(self) -> None: ...


class ZipContainer:
    """A zip archive."""

    def __init__(self, file: Path) -> None:
        with plain_files.opened(file) as stream:
            size = os.fstat(stream.fileno()).st_size
            _require_short_list(stream, size)
        try:
            # A hostile archive makes zipfile raise each of these; NotImplementedError is its word for versions it can't read.
            self._zip = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise BadBundle(f"This is no zip archive that can be read: {error}.") from None
        self.sizes = _sizes(self._zip.infolist())
        total = sum(self.sizes.values())
        if total > min(max(ALWAYS_BYTES, MOST_TIMES * size), MOST_BYTES):
            raise BadBundle(
                f"The archive of {size} bytes says that {total} bytes are in it: that is no bundle of results."
            )

    def open(self, name: str) -> Any:
        return self._zip.open(name)

    def close(self) -> None:
        self._zip.close()


class DirectoryContainer:
    """An unpacked bundle."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.sizes: dict[str, int] = {}
        for entry in trees.walk(directory):
            if entry.is_directory:
                continue
            name = _safe_name("/".join((*entry.above, entry.name)))
            if not entry.is_file:
                raise BadBundle(f"{name} is not a plain file.")
            self.sizes[name] = entry.status.st_size
            if len(self.sizes) > MOST_FILES:
                raise BadBundle(f"More than {MOST_FILES} files are in the directory.")

    def open(self, name: str) -> Any:
        return plain_files.opened(self._directory / name)

    def close(self) -> None:
        pass


class Archive:
    """The files of a bundle with their listed hashes."""

    def __init__(self, container: Container) -> None:
        self._container = container
        self.hashes = self._read_list()

    @classmethod
    @contextmanager
    def opened(cls, path: Path) -> Iterator[Archive]:
        """Open a zip archive or a directory. Raise BadBundle, or OSError if it is missing."""
        container: Container = DirectoryContainer(path) if path.is_dir() else ZipContainer(path)
        try:
            yield cls(container)
        finally:
            container.close()

    def size(self, name: str) -> int:
        return self._container.sizes[name]

    @property
    def total_bytes(self) -> int:
        return sum(self._container.sizes.values())

    def _read_list(self) -> dict[str, str]:
        sizes = self._container.sizes
        if MANIFEST not in sizes:
            raise BadBundle(f"It has no {MANIFEST}: it is not a bundle of Rankwire.")
        hashes: dict[str, str] = {}
        for line in self.content(MANIFEST).decode(errors="replace").splitlines():
            digest, _, name = line.partition("  ")
            if len(digest) != 64 or not name or name in hashes:
                raise BadBundle(f"{MANIFEST} has a line that is none: {line[:100]!r}.")
            hashes[name] = digest
        if missing := sorted(set(hashes) - set(sizes)):
            raise BadBundle(f"{missing[0]} is missing from the bundle.")
        if unlisted := sorted(set(sizes) - set(hashes) - {MANIFEST}):
            raise BadBundle(f"{unlisted[0]} is in the bundle, but not in its {MANIFEST}.")
        return hashes

    def verify(self) -> None:
        """Read every file once. Raise BadBundle for one that differs from the list."""
        for name in self.hashes:
            for _ in self.pieces(name):
                pass

    def pieces(self, name: str) -> Iterator[bytes]:
        """Yield the content of a file. Raise BadBundle, at its end at the latest."""
        if name not in self.hashes:
            raise BadBundle(f"{name} is missing from the bundle.")
        digest = hashlib.sha256()
        for piece in pieces_of(self._container, name):
            digest.update(piece)
            yield piece
        if digest.hexdigest() != self.hashes[name]:
            raise BadBundle(f"{name} was changed after the bundle was made: its hash is another one.")

    def content(self, name: str) -> bytes:
        """Return a whole file. Raise BadBundle if it is missing, too long or changed."""
        if self._container.sizes.get(name, 0) > JSON_BYTES:
            raise BadBundle(f"{name} is longer than the {JSON_BYTES >> 20} MiB that are read of such a file.")
        return b"".join(self.pieces(name) if name != MANIFEST else pieces_of(self._container, name))

    def json(self, name: str) -> Any:
        """Return the content of a JSON file. Raise BadBundle."""
        return parsed_json(self.content(name), name)

    def unpack(self, name: str, target: Path) -> None:
        """Write a file of the bundle to a new place."""
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as stream:
            for piece in self.pieces(name):
                stream.write(piece)


def in_pieces(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield the content of an open file in pieces of bounded size."""
    return iter(lambda: stream.read(_PIECE), b"")


def pieces_of(container: Container, name: str) -> Iterator[bytes]:
    """Yield the content of a container's file. Raise BadBundle if it is damaged."""
    remaining = container.sizes[name]
    try:
        with container.open(name) as stream:
            for piece in in_pieces(stream):
                remaining -= len(piece)
                if remaining < 0:
                    raise BadBundle(f"{name} is longer than the archive says.")
                yield piece
    # zipfile's words for damage, for kinds of compression that it has not (NotImplementedError) and for a password (RuntimeError).
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError, ValueError) as error:
        raise BadBundle(f"{name} cannot be read: {error}.") from None


def parsed_json(text: str | bytes, name: str) -> Any:
    """Return a JSON value without NaN. Raise BadBundle that begins with ``name``."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise BadBundle(f"{name} is no JSON that can be read: {str(error)[:200]}.") from None


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a number")


def _require_short_list(stream: IO[bytes], size: int) -> None:
    """Refuse a huge list of members: ``zipfile`` reads all of it."""
    stream.seek(max(0, size - _END - _LOCATOR64 - _END64))
    tail = stream.read()
    end = tail[-_END:]
    if len(end) < _END or end[:4] != b"PK\x05\x06" or end[-2:] != b"\0\0":
        raise BadBundle("This is no zip archive, or one that was not made as a bundle is.")
    (length,) = struct.unpack("<L", end[12:16])
    if tail[-_END - _LOCATOR64 :][:4] == b"PK\x06\x07":
        if tail[:4] != b"PK\x06\x06":
            raise BadBundle("The end of the archive contradicts itself.")
        (length,) = struct.unpack("<Q", tail[40:48])
    if length > _LIST_BYTES:
        raise BadBundle("The archive has more members than a bundle may have.")


def _sizes(members: list[zipfile.ZipInfo]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    if len(members) > MOST_FILES:
        raise BadBundle(f"More than {MOST_FILES} files are in the archive.")
    for member in members:
        # zipfile cuts names at NUL and turns backslashes on other systems: what was written is judged.
        name = _safe_name(member.orig_filename)
        kind = stat.S_IFMT(member.external_attr >> 16)
        if member.is_dir():
            continue
        if kind not in (0, stat.S_IFREG):
            raise BadBundle(f"{name} is a link or a device in the archive, not a plain file.")
        if member.flag_bits & 0x1:
            raise BadBundle(f"{name} is encrypted.")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise BadBundle(f"{name} is compressed in a way that bundles are not.")
        if name in sizes:
            raise BadBundle(f"{name} is in the archive twice.")
        sizes[name] = member.file_size
    return sizes


def _safe_name(name: str) -> str:
    """Return the name of a file within a bundle. Raise BadBundle for any other."""
    if not is_safe_path(name.rstrip("/")):
        raise BadBundle(f"{name[:100]!r} is no name that a file of a bundle may have.")
    return name


def is_safe_path(name: str) -> bool:
    """Return whether ``name`` is a plain relative path of printable characters."""
    path = PurePosixPath(name)
    return (
        0 < len(name) <= _LONGEST_NAME
        and "\\" not in name
        and is_storable_text(name)
        and name.isprintable()
        and not path.is_absolute()
        and path.as_posix() == name
        and not {"..", ".", ""} & {*path.parts}
        and ":" not in path.parts[0]
    )
