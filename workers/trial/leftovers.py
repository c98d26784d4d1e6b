"""What a trial that did not finish leaves on disk: its output is kept for the reader, its scratch files go."""

from __future__ import annotations

import shutil
from typing import Final

from experiments.files import trial_directory
from experiments.models import Artifact, Trial

_KEPT: Final = {
    "stdout.txt": Artifact.Kind.STDOUT,
    "stderr.txt": Artifact.Kind.STDERR,
    "capture*.pcapng.zst": Artifact.Kind.CAPTURE,
}
SCRATCH: Final = ("work", "ranks")
"""Directories that only the running trial needs."""


def describe(trial: Trial) -> list[Artifact]:
    """Return unsaved rows for the files of an unfinished trial that are worth keeping."""
    directory = trial_directory(trial)
    return [
        Artifact.describe(trial.pk, kind, file)
        for pattern, kind in _KEPT.items()
        for file in sorted(directory.glob(pattern))
        if file.is_file()
    ]


def remove_scratch(trial: Trial) -> None:
    """Remove the directories that only the running trial needed."""
    for name in SCRATCH:
        shutil.rmtree(trial_directory(trial) / name, ignore_errors=True)
