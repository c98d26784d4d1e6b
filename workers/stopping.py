"""Stopping of a worker: it claims no trial and requeues slow ones."""

from __future__ import annotations

import mmap
import struct
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from django.conf import settings

_SINCE: Final = mmap.mmap(-1, 8)
"""Time of the announcement on CLOCK_MONOTONIC, 0 for none. Shared by a worker and the processes that it forks later."""
_MOMENT: Final = struct.Struct("d")


def announce() -> None:
    """Record that this worker is stopping; in its first process, visible in all."""
    if not is_stopping():
        _MOMENT.pack_into(_SINCE, 0, time.monotonic())


def is_stopping() -> bool:
    """Return whether this worker is stopping."""
    return _since() > 0.0


def is_overdue(grace_s: float) -> bool:
    """Return whether the stop was announced more than ``grace_s`` seconds ago."""
    return is_stopping() and time.monotonic() > _since() + grace_s


def _since() -> float:
    return float(_MOMENT.unpack_from(_SINCE, 0)[0])


def record_on_disk(worker: str) -> None:
    """Record on disk, for the reaper, that a worker stops without a database."""
    with suppress(OSError):
        _file(worker).parent.mkdir(parents=True, exist_ok=True)
        _file(worker).touch()


def is_recorded_on_disk(worker: str) -> bool:
    """Return whether a worker of this machine was stopped while the database was away."""
    return bool(worker) and _file(worker).exists()


def forget(worker: str) -> None:
    """Remove the record of a worker whose trial was handled."""
    with suppress(OSError):
        _file(worker).unlink(missing_ok=True)


def _file(worker: str) -> Path:
    return Path(settings.VAR) / "ending" / worker.replace("/", "_")
