"""Plain files in directories that users' programs can write to. Pure.

A link would lead out of the trial, a pipe would block its reader, and a device is no result: all are refused.
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

import structlog

from experiments.common import trees
from experiments.errors import NotPlain

_KINDS: Final = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFDIR: "a directory",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
FILE_MODE: Final = 0o640
DIRECTORY_MODE: Final = 0o750
log = structlog.get_logger()


@contextlib.contextmanager
def opened(file: Path) -> Iterator[IO[bytes]]:
    """Open a plain file without following links or blocking. Raise NotPlain, OSError."""
    with _folder(file) as folder:
        # Checked before, because opening a device may act on it, and again after opening.
        _require_plain(file, os.stat(file.name, dir_fd=folder, follow_symlinks=False))
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            descriptor = os.open(file.name, flags, dir_fd=folder)
        except BlockingIOError:
            raise NotPlain(f"{file.name} is reserved by the program (a lease of fcntl)") from None
        with os.fdopen(descriptor, "rb") as stream:
            _require_plain(file, os.fstat(stream.fileno()))
            yield stream


@contextlib.contextmanager
def private() -> Iterator[None]:
    """Create files and directories that other users of the machine cannot read."""
    before = os.umask(0o777 & ~DIRECTORY_MODE)
    try:
        yield
    finally:
        os.umask(before)


def is_there(file: Path) -> bool:
    """Return whether a plain file exists. Raise NotPlain for anything else."""
    try:
        with opened(file):
            return True
    except FileNotFoundError:
        return False


def read_text(file: Path, *, limit_bytes: int) -> str:
    """Return the text of a plain file. Raise NotPlain (also if it is longer), OSError."""
    return decoded(_content(file, limit_bytes))


def decoded(content: bytes) -> str:
    """Return a text in UTF-8, or in UTF-16 with its mark; invalid bytes become U+FFFD."""
    is_wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return content.decode("utf-16" if is_wide else "utf-8", errors="replace")


def read_utf8(file: Path, *, limit_bytes: int) -> str:
    """Return the text of a plain file. Raise NotPlain, OSError.

    NotPlain names the line of the first byte that is not UTF-8.
    """
    content = _content(file, limit_bytes)
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise NotPlain(f"{file.name} is text in UTF-16: save it as UTF-8")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise NotPlain(
            f"{file.name} is not text in UTF-8: line {line} has the byte 0x{content[error.start]:02x}; save it as UTF-8"
        ) from None


def _content(file: Path, limit_bytes: int) -> bytes:
    with opened(file) as stream:
        content = stream.read(limit_bytes + 1)
    if len(content) > limit_bytes:
        raise NotPlain(f"{file.name} is longer than {limit_bytes} bytes")
    return content


def write(file: Path, content: bytes) -> None:
    """Write a new plain file, replacing anything of that name."""
    trees.remove(file)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(file, flags, FILE_MODE), "wb") as stream:
        stream.write(content)


def move(file: Path, target: Path) -> Path:
    """Move a plain file to ``target``, replacing it. Raise NotPlain, OSError."""
    with opened(file) as stream:
        os.fchmod(stream.fileno(), FILE_MODE)
        if os.fstat(stream.fileno()).st_uid != os.geteuid():  # the program ran as another user
            os.fchown(stream.fileno(), os.geteuid(), os.getegid())
        trees.remove(target)
    return file.rename(target)


def discard(tree: Path) -> bool:
    """Remove a tree; log the reason and return False if anything is left."""
    try:
        trees.remove(tree)
    except OSError as error:
        log.warning("files_not_removed", path=str(tree), reason=str(error))
        return False
    return True


def shorten(file: Path, *, limit_bytes: int) -> None:
    """Keep the first and last lines of a long text. Raise NotPlain, OSError."""
    with opened(file) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size <= limit_bytes:
            return
        half = limit_bytes // 2
        head = stream.read(half)
        head = head[: head.rfind(b"\n") + 1] or head
        stream.seek(size - half)
        last = stream.read(half)
        tail = last[last.find(b"\n") + 1 :]
    left_out = size - len(head) - len(tail)
    note = f"[{left_out} bytes are left out here: only the first and last {half} bytes of this output are kept]\n"
    write(file, head + (b"" if head.endswith(b"\n") else b"\n") + note.encode() + tail)


@contextlib.contextmanager
def _folder(file: Path) -> Iterator[int]:
    """Open the directory of a file, which may have been replaced by a link."""
    try:
        folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            raise NotPlain(f"{file.parent.name} is no longer a directory") from None
        raise
    try:
        yield folder
    finally:
        os.close(folder)


def _require_plain(file: Path, status: os.stat_result) -> None:
    kind = stat.S_IFMT(status.st_mode)
    if kind != stat.S_IFREG:
        raise NotPlain(f"{file.name} is {_KINDS.get(kind, 'something else')}, not a plain file")
