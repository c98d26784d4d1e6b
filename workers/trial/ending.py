"""Workers that are told to end while the database is away: noted on disk, so that their trials lose no attempt."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from django.conf import settings


def note(worker: str) -> None:
    """Record that a worker is ending, for the reaper that runs after it."""
    with suppress(OSError):
        _file(worker).parent.mkdir(parents=True, exist_ok=True)
        _file(worker).touch()


def is_noted(worker: str) -> bool:
    """Return whether a worker of this machine was told to end."""
    return bool(worker) and _file(worker).exists()


def forget(worker: str) -> None:
    """Remove the record of a worker whose trial is dealt with."""
    with suppress(OSError):
        _file(worker).unlink(missing_ok=True)


def _file(worker: str) -> Path:
    return Path(settings.VAR) / "ending" / worker.replace("/", "_")
