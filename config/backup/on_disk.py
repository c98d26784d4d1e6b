"""What must have reached the disk before it is relied upon, and nothing else: others may have gigabytes on their way there."""

from __future__ import annotations

import errno
import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

_AT_ONCE: Final = 8
"""A journal commits what waits for it together."""
_CANNOT: Final = (errno.EINVAL, errno.EOPNOTSUPP)
"""Some file systems of networks cannot be asked."""


def sync_tree(directory: Path) -> None:
    """Wait until every file below ``directory``, and every name, is on the disk. Raise OSError where one could not be written."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for above, _directories, names in os.walk(directory, topdown=False):
            for _done in pool.map(_sync_file, [Path(above) / name for name in names]):
                pass
            sync_directory(above)


def sync_directory(directory: Path | str) -> None:
    """Wait until the names in ``directory`` are on the disk."""
    _sync(directory, os.O_DIRECTORY)


def _sync_file(file: Path) -> None:
    if stat.S_ISREG(file.lstat().st_mode):
        _sync(file, os.O_NOFOLLOW)


def _sync(path: Path | str, flags: int) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT:
            raise
    finally:
        os.close(descriptor)
