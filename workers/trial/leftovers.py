"""What a trial that did not finish leaves on disk: its output is kept for the reader, its scratch files go."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import Final

from django.conf import settings

from experiments.common import plain_files
from experiments.errors import NotPlain
from experiments.files import MPI_PROFILE_NAME, trial_directory, write_analysis
from experiments.models import Artifact, Trial
from workers.capture.stored_capture import SHARES
from workers.trial.inside_mpi import left_behind

_KEPT: Final = {
    "stdout.txt": Artifact.Kind.STDOUT,
    "stderr.txt": Artifact.Kind.STDERR,
    "capture*.pcapng.zst": Artifact.Kind.CAPTURE,
    MPI_PROFILE_NAME: Artifact.Kind.OTHER,
}
SCRATCH: Final = ("work", "ranks", SHARES)
"""Directories that only the running trial needs."""


def describe(trial: Trial) -> list[Artifact]:
    """Return unsaved rows for the plain files of an unfinished trial that are worth keeping; long output is shortened."""
    directory = trial_directory(trial)
    _keep_profile(directory)
    rows = []
    for pattern, kind in _KEPT.items():
        for file in sorted(directory.glob(pattern)):
            with contextlib.suppress(NotPlain):
                if kind in (Artifact.Kind.STDOUT, Artifact.Kind.STDERR):
                    plain_files.shorten(file, limit_bytes=settings.OUTPUT_LIMIT_BYTES)
                rows.append(Artifact.describe(trial.pk, kind, file))
    return rows


def _keep_profile(directory: Path) -> None:
    """What ranks had counted until they were ended: in which call each of them was."""
    tables = left_behind(directory / "ranks")
    if tables is not None:
        with contextlib.suppress(OSError):  # a full disk may be why the trial ended: its own reason counts
            write_analysis(directory / MPI_PROFILE_NAME, tables)


def remove_scratch(trial: Trial) -> None:
    """Remove the directories that only the running trial needed."""
    for name in SCRATCH:
        shutil.rmtree(trial_directory(trial) / name, ignore_errors=True)
