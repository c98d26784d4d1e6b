"""Walk and removal of directory trees that programs of trials can write.

Their depth, names, modes and links are the program's choice. Every step opens one name below an open directory, so that
no path becomes too long, no link is followed and nothing recurses. Agents on other machines use this module too, with
Python 3.9.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_DIRECTORY = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Entry(NamedTuple):
    """Entry of the open directory `descriptor`, below the directories `above`.

    Both are valid until the next entry.
    """

    above: list[str]
    descriptor: int
    name: str
    is_directory: bool

    @property
    def status(self) -> os.stat_result:
        return os.stat(self.name, dir_fd=self.descriptor, follow_symlinks=False)

    @property
    def is_file(self) -> bool:
        """True for a plain file that is still there."""
        try:
            return stat.S_ISREG(self.status.st_mode)
        except FileNotFoundError:
            return False


def walk(top: Path, *, levels: int | None = None, leaves_first: bool = False) -> Iterator[Entry]:
    """Yield the entries of a tree, at most `levels` deep.

    With `leaves_first` a directory comes after its entries. Directories that their owner closed are opened again. Raise
    OSError if `top` is no directory, or if one moves meanwhile.
    """
    rights = stat.S_IRWXU if leaves_first else stat.S_IRUSR | stat.S_IXUSR
    current = _open(top, rights)
    above: list[str] = []
    parents: list[tuple[int, int]] = []
    waiting: list[list[str]] = []
    try:
        while True:
            waiting.append([])
            with os.scandir(current) as items:
                for item in items:
                    if is_directory := item.is_dir(follow_symlinks=False):
                        waiting[-1].append(item.name)
                    if not (is_directory and leaves_first):
                        yield Entry(above, current, item.name, is_directory)
            if levels is not None and len(waiting) >= levels:
                waiting[-1].clear()
            while True:
                if waiting[-1]:
                    name = waiting[-1].pop()
                    with contextlib.suppress(OSError):  # removed or replaced meanwhile, or of another user
                        below = _open(name, rights, current)
                        break
                    continue
                waiting.pop()
                if not above:
                    return
                below, current = current, _parent(current, parents.pop())
                os.close(below)
                name = above.pop()
                if leaves_first:
                    yield Entry(above, current, name, True)
            parents.append(_identity(current))
            above.append(name)
            os.close(current)
            current = below
    finally:
        os.close(current)


def remove(path: Path) -> None:
    """Remove a file, link or tree, if it exists. Raise OSError if anything is left."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISDIR(path.lstat().st_mode):
            path.unlink()
            return
        problem = None
        for entry in walk(path, leaves_first=True):
            try:
                (os.rmdir if entry.is_directory else os.unlink)(entry.name, dir_fd=entry.descriptor)
            except FileNotFoundError:
                continue  # another host removes the same tree
            except OSError as error:
                problem = problem or error
        if problem is not None:
            raise problem
        path.rmdir()


def _open(path: str | Path, rights: int, above: int | None = None) -> int:
    """Open a directory with these rights for its owner."""
    closed = os.open(path, os.O_PATH | _DIRECTORY, dir_fd=above)
    try:
        mode = os.fstat(closed).st_mode
        if mode & rights != rights and os.geteuid() != 0:
            os.chmod(f"/proc/self/fd/{closed}", stat.S_IMODE(mode) | rights)  # noqa: PTH101 - of the open directory
        return os.open(".", os.O_RDONLY | _DIRECTORY, dir_fd=closed)
    finally:
        os.close(closed)


def _parent(directory: int, expected: tuple[int, int]) -> int:
    """Open the directory above another one."""
    parent = os.open("..", os.O_RDONLY | _DIRECTORY, dir_fd=directory)
    if _identity(parent) != expected:
        os.close(parent)
        raise OSError(errno.ESTALE, "a directory was moved while it was read")
    return parent


def _identity(directory: int) -> tuple[int, int]:
    status = os.fstat(directory)
    return status.st_dev, status.st_ino
