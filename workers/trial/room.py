"""Free room on the disk of this machine: trials that cannot be stored wait before their program starts."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from django.conf import settings
from django.db.models import Sum

from analysis.numbers import amount
from experiments.models import State, Trial

_LAST_TRIALS: Final = 5
_COPIES: Final = 3
"""A capture is on disk as it was recorded, as it is kept, and for a moment as both."""


def lacking(trial: Trial) -> str:
    """Return why a trial cannot be stored below RANKWIRE_VAR, with the free and the required room; empty if it can."""
    free = shutil.disk_usage(_existing(settings.VAR)).free
    required = settings.DISK_RESERVE_BYTES + _COPIES * _stored_bytes(trial)
    if free >= required:
        return ""
    return (
        f"Waits for room on the disk: {amount(free, 'B')} free, {amount(required, 'B')} required. "
        "It starts when there is room in RANKWIRE_VAR."
    )


def _existing(directory: Path) -> Path:
    """Return the directory, or its nearest parent if the first trial of a worker creates it later."""
    return next(path for path in (directory, *directory.parents) if path.exists())


def _stored_bytes(trial: Trial) -> int:
    """Return the most that one of the last finished trials of the experiment stored."""
    finished = Trial.objects.filter(experiment=trial.experiment_id, state=State.FINISHED).order_by("-ended_at")
    last = finished.annotate(stored=Sum("artifacts__size_bytes")).values_list("stored", flat=True)[:_LAST_TRIALS]
    return max((stored or 0 for stored in last), default=0)
