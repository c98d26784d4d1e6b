"""Where the files of a trial lie, and how its stored analysis and an unread result are written and read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import zstandard
from django.conf import settings

from analysis.mpi.calls import Calls, NotATrace, from_bytes
from experiments.errors import NotPlain, Tampered
from experiments.models import Artifact, Trial, TrialResult
from experiments.pure import plain_files

ANALYSIS_NAME: Final = "analysis.json.zst"
MPI_PROFILE_NAME: Final = "mpi-profile.json.zst"
"""What `analysis.mpi.profile.tables` says of a trial's time inside MPI."""
MPI_CALLS_NAME: Final = "mpi-calls.zst"
"""Every call of a trial's ranks, as `analysis.mpi.calls` writes them; only of a trial with ``profile: trace``."""
MEASURED_NAME: Final = "measured.json"
"""What was measured in a trial whose output its parser refused: kept beside the output until a better parser reads it."""
_MEASURED: Final = ("measurements", "not_available", "trust", "trust_reasons", "environment", "conditions")


def trial_directory(trial: Trial) -> Path:
    """Return the directory of a trial's files. It need not exist."""
    return Path(settings.VAR) / "trials" / str(trial.pk)


def write_analysis(file: Path, analysis: dict[str, Any]) -> None:
    """Write the analysis of a capture, or the profile of a trial, as compressed JSON."""
    plain_files.write(file, zstandard.compress(json.dumps(analysis, separators=(",", ":")).encode()))


def read_analysis(trial: Trial) -> dict[str, Any] | None:
    """Return the stored analysis of a trial's capture, or None when there is none that can be believed."""
    return read_analyses([trial]).get(trial.pk)


def read_analyses(trials: Sequence[Trial]) -> dict[int, dict[str, Any]]:
    """Return the stored analyses by trial, of those that have one that can be believed: one query for all."""
    artifacts = Artifact.objects.filter(trial__in=trials, kind=Artifact.Kind.ANALYSIS, removed_at=None)
    files = {artifact.trial_id: _intact(artifact) for artifact in artifacts}
    return {key: json.loads(zstandard.decompress(file.read_bytes())) for key, file in files.items() if file is not None}


def read_mpi_profile(trial: Trial) -> dict[str, Any] | None:
    """Return the tables of a trial's time inside MPI, or None when there are none that can be believed."""
    file = _intact(trial.artifacts.filter(name=MPI_PROFILE_NAME, removed_at=None).first())
    return None if file is None else dict(json.loads(zstandard.decompress(file.read_bytes())))


def read_mpi_calls(trial: Trial) -> Calls | None:
    """Return the calls of a trial's ranks, or None when there are none that can be believed."""
    file = _intact(trial.artifacts.filter(name=MPI_CALLS_NAME, removed_at=None).first())
    try:
        return None if file is None else from_bytes(file.read_bytes())
    except NotATrace:
        return None


def write_measured(file: Path, result: TrialResult) -> None:
    """Write everything of a result but what the output says: no figures of merit, no tables."""
    plain_files.write(file, json.dumps({name: getattr(result, name) for name in _MEASURED}).encode())


def read_measured(trial: Trial) -> TrialResult | None:
    """Return what ``write_measured`` wrote for a trial; None where it wrote nothing, or the file is gone or was changed."""
    file = _intact(trial.artifacts.filter(name=MEASURED_NAME, removed_at=None).first())
    return None if file is None else TrialResult(**json.loads(file.read_text()))


def _intact(artifact: Artifact | None) -> Path | None:
    if artifact is None:
        return None
    try:
        return artifact.intact()
    except (Tampered, NotPlain, OSError):
        return None
