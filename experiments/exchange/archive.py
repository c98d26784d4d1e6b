"""Untrusted bundles: zip archives or directories, checked before they are read.

Everything that a list of members can show is judged in `_judged`, before a byte is unpacked; unpacked files are compared with their
hashes while they are read. Reading counts as processor time of the request.
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final, Protocol

from experiments.common import budget, plain_files, strict_json, trees
from experiments.common.storable import distinct_fields, is_storable_text
from experiments.errors import BadBundle, InvalidSpec
from experiments.selectors.quotas import free_bytes

MANIFEST: Final = "manifest-sha256.txt"
MOST_TIMES: Final = 200
"""Largest ratio of contents to archive: tables of numbers shrink to a fiftieth."""
ALWAYS_BYTES: Final = 64 << 20
"""Contents that any archive may have."""
JSON_BYTES: Final = 16 << 20
"""Longest JSON file: Python needs 20 times its size."""
_LONGEST_NAME: Final = 400
_LONGEST_PART: Final = 255
"""Bytes of a name in a file system."""
_DEEPEST: Final = 32
_MEMBER_BYTES: Final = 200
"""Bytes of a member in the list of an archive, on average."""
ELSEWHERE: Final = "Split it, or import it with script/manage import on the server."
_PIECE: Final = 1 << 20
_END, _END64, _LOCATOR64 = 22, 56, 20
"""Bytes of the records that end an archive (PKWARE APPNOTE 4.3.14 to 4.3.16)."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of an import, by its way."""

    files: int
    content_bytes: int
    """Of all files, unpacked."""
    expanded_bytes: int
    """Of all compressed analyses, profiles and traces among them, unpacked once more."""
    description_bytes: int
    """Of the descriptions of all experiments, which are in memory at once."""
    trial_bytes: int
    """Of those of all trials: the page of an experiment reads parts of them all."""
    json_values: int
    """Of one JSON text."""
    clusters: int
    """Of all experiments: pages list them all."""


OF_COMMAND: Final = Limits(
    files=200_000,
    content_bytes=1 << 40,
    expanded_bytes=1 << 42,
    description_bytes=1 << 40,
    trial_bytes=1 << 40,
    json_values=1 << 40,
    clusters=1 << 40,
)
"""Of `script/manage import`, which an administrator runs."""


class Container(Protocol):
    """A source of the files of a bundle."""

    sizes: dict[str, int]

    def open(self, name: str) -> Any: ...

    def close(self) -> None: ...


class ZipContainer:
    """A zip archive."""

    def __init__(self, file: Path, limits: Limits = OF_COMMAND) -> None:
        with plain_files.opened(file) as stream:
            size = os.fstat(stream.fileno()).st_size
            _require_short_list(stream, size, limits)
        try:
            # A hostile archive makes zipfile raise each of these; NotImplementedError is its word for versions it can't read.
            self._zip = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise BadBundle(f"This is no zip archive that can be read: {error}.") from None
        self.sizes = _judged(map(_member, self._zip.infolist()), limits)
        total = sum(self.sizes.values())
        if total > max(ALWAYS_BYTES, MOST_TIMES * size):
            raise BadBundle(
                f"The archive of {size} bytes says that {total} bytes are in it: that is no bundle of results."
            )

    def open(self, name: str) -> Any:
        return self._zip.open(name)

    def close(self) -> None:
        self._zip.close()


class DirectoryContainer:
    """An unpacked bundle."""

    def __init__(self, directory: Path, limits: Limits = OF_COMMAND) -> None:
        self._directory = directory
        self.sizes = _judged(self._files(), limits)

    def _files(self) -> Iterator[tuple[str, int, str]]:
        for entry in trees.walk(self._directory):
            if not entry.is_directory:
                yield (
                    "/".join((*entry.above, entry.name)),
                    entry.status.st_size,
                    "" if entry.is_file else "is not a plain file",
                )

    def open(self, name: str) -> Any:
        return plain_files.opened(self._directory / name)

    def close(self) -> None:
        pass


class Archive:
    """The files of a bundle with their listed hashes."""

    def __init__(self, container: Container, limits: Limits) -> None:
        self._container, self._limits = container, limits
        self.hashes = self._read_list()

    @classmethod
    @contextmanager
    def opened(cls, path: Path, limits: Limits = OF_COMMAND) -> Iterator[Archive]:
        """Open a zip archive or a directory. Raise BadBundle, or OSError if it is missing."""
        container: Container = DirectoryContainer(path, limits) if path.is_dir() else ZipContainer(path, limits)
        try:
            yield cls(container, limits)
        finally:
            container.close()

    def size(self, name: str) -> int:
        return self._container.sizes[name]

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
        return parsed_json(self.content(name), name, self._limits.json_values)

    def unpack(self, name: str, target: Path) -> None:
        """Write a file of the bundle to a new place."""
        write_new(target, self.pieces(name))


def write_new(target: Path, pieces: Iterable[bytes]) -> None:
    """Write a new file. Raise BadBundle if it would use the reserve of the disk."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("xb") as stream:
        for piece in pieces:
            if free_bytes() < len(piece):
                raise BadBundle("The disk of this installation has no room for its files.")
            stream.write(piece)


def in_pieces(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield the content of an open file in pieces of bounded size."""
    return iter(lambda: stream.read(_PIECE), b"")


def pieces_of(container: Container, name: str) -> Iterator[bytes]:
    """Yield the content of a container's file. Raise BadBundle if it is damaged."""
    remaining = container.sizes[name]
    budget.check()
    try:
        with container.open(name) as stream:
            for piece in in_pieces(stream):
                budget.check()
                remaining -= len(piece)
                if remaining < 0:
                    raise BadBundle(f"{name} is longer than the archive says.")
                yield piece
    # zipfile's words for damage, for kinds of compression that it has not (NotImplementedError) and for a password (RuntimeError).
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError, ValueError) as error:
        raise BadBundle(f"{name} cannot be read: {error}.") from None


def parsed_json(text: str | bytes, name: str, most_values: int) -> Any:
    """Return a JSON value of finite numbers. Raise BadBundle that names ``name``."""
    try:
        return strict_json.parse(text, most_values=most_values, object_pairs_hook=distinct_fields)
    except (InvalidSpec, ValueError, RecursionError) as error:
        raise BadBundle(f"{name} is no JSON that can be read: {str(error)[:200]}.") from None


def _require_short_list(stream: IO[bytes], size: int, limits: Limits) -> None:
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
    if length > limits.files * _MEMBER_BYTES:
        raise BadBundle(_too_many(limits))


def _member(member: zipfile.ZipInfo) -> tuple[str, int, str]:
    """Return name, size and flaw of a member."""
    flaw = ""
    if not member.is_dir() and stat.S_IFMT(member.external_attr >> 16) not in (0, stat.S_IFREG):
        flaw = "is a link or a device in the archive, not a plain file"
    elif member.flag_bits & 0x1:
        flaw = "is encrypted"
    elif member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        flaw = "is compressed in a way that bundles are not"
    # zipfile cuts names at NUL and turns backslashes on other systems: the written name is judged.
    return member.orig_filename, member.file_size, flaw


def _judged(members: Iterable[tuple[str, int, str]], limits: Limits) -> dict[str, int]:
    """Return the size of each file of (name, size, flaw). Raise BadBundle."""
    sizes: dict[str, int] = {}
    directories: set[str] = set()
    total = 0
    for number, (written, size, flaw) in enumerate(members, start=1):
        name = written.removesuffix("/")
        if number > limits.files:
            raise BadBundle(_too_many(limits))
        if not is_safe_path(name):
            raise BadBundle(f"{written[:100]!r} is no name that a file of a bundle may have.")
        if flaw:
            raise BadBundle(f"{name} {flaw}.")
        if name in sizes:
            raise BadBundle(f"{name} is in the archive twice.")
        parts = name.split("/")
        directories.update("/".join(parts[:depth]) for depth in range(1, len(parts) + (written != name)))
        total += size
        if total > limits.content_bytes:
            raise BadBundle(f"More than {limits.content_bytes >> 20} MiB are in it. {ELSEWHERE}")
        if written == name:
            sizes[name] = size
    if conflicts := sorted(directories & sizes.keys()):
        raise BadBundle(f"{conflicts[0]} is a file and a directory in it.")
    return sizes


def _too_many(limits: Limits) -> str:
    return f"More than {limits.files} files are in it. {ELSEWHERE}"


def is_safe_path(name: str) -> bool:
    """Return whether ``name`` is a plain relative path of printable characters."""
    path = PurePosixPath(name)
    return (
        0 < len(name) <= _LONGEST_NAME
        and name.count("/") < _DEEPEST
        and "\\" not in name
        and is_storable_text(name)
        and name.isprintable()
        and not path.is_absolute()
        and path.as_posix() == name
        and not {"..", ".", ""} & {*path.parts}
        and ":" not in path.parts[0]
        and all(len(part.encode()) <= _LONGEST_PART for part in path.parts)
    )
