"""A worker that was told to end: its processes claim no more trials, and hand back what does not end in time."""

from __future__ import annotations

import mmap
import struct
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from django.conf import settings

_SINCE: Final = mmap.mmap(-1, 8)
"""When it was told, on the monotonic clock; 0 is not at all. Shared by a worker and the processes that it forks later."""
_MOMENT: Final = struct.Struct("d")


def announce() -> None:
    """Note that this worker is to end; called in its first process, and heard in all."""
    if not is_asked():
        _MOMENT.pack_into(_SINCE, 0, time.monotonic())


def is_asked() -> bool:
    """Return whether this worker is to end."""
    return _since() > 0.0


def is_overdue(grace_s: float) -> bool:
    """Return whether it was told so more than ``grace_s`` seconds ago."""
    return is_asked() and time.monotonic() > _since() + grace_s


def _since() -> float:
    return float(_MOMENT.unpack_from(_SINCE, 0)[0])


def note_on_disk(worker: str) -> None:
    """Record that a worker is ending while the database is away, for the reaper that runs after it: its trial loses no attempt."""
    with suppress(OSError):
        _file(worker).parent.mkdir(parents=True, exist_ok=True)
        _file(worker).touch()


def is_noted_on_disk(worker: str) -> bool:
    """Return whether a worker of this machine received its stop signal while the database was away."""
    return bool(worker) and _file(worker).exists()


def forget(worker: str) -> None:
    """Remove the record of a worker whose trial is dealt with."""
    with suppress(OSError):
        _file(worker).unlink(missing_ok=True)


def _file(worker: str) -> Path:
    return Path(settings.VAR) / "ending" / worker.replace("/", "_")
