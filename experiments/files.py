"""Where the files of a trial lie, and how its stored analysis and an unread result are written and read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import zstandard
from django.conf import settings

from analysis.mpi.calls import Calls, NotATrace, from_bytes
from experiments import store
from experiments.common import plain_files
from experiments.errors import NotPlain, Tampered
from experiments.models import Artifact, Trial, TrialResult

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
    contents = {artifact.trial_id: _believed(artifact) for artifact in artifacts}
    return {key: _unpacked(content) for key, content in contents.items() if content is not None}


def read_mpi_profile(trial: Trial) -> dict[str, Any] | None:
    """Return the tables of a trial's time inside MPI, or None when there are none that can be believed."""
    content = _believed(trial.artifacts.filter(name=MPI_PROFILE_NAME, removed_at=None).first())
    return None if content is None else _unpacked(content)


def read_mpi_calls(trial: Trial) -> Calls | None:
    """Return the calls of a trial's ranks, or None when there are none that can be believed."""
    content = _believed(trial.artifacts.filter(name=MPI_CALLS_NAME, removed_at=None).first())
    try:
        return None if content is None else from_bytes(content)
    except NotATrace:
        return None


def write_measured(file: Path, result: TrialResult) -> None:
    """Write everything of a result but what the output says: no figures of merit, no tables."""
    plain_files.write(file, json.dumps({name: getattr(result, name) for name in _MEASURED}).encode())


def read_measured(trial: Trial) -> TrialResult | None:
    """Return what ``write_measured`` wrote for a trial; None where it wrote nothing, or the file is gone or was changed."""
    content = _believed(trial.artifacts.filter(name=MEASURED_NAME, removed_at=None).first())
    return None if content is None else TrialResult(**json.loads(content))


def deliver(trial: Trial, artifacts: Sequence[Artifact]) -> None:
    """Put what lies in the directory of a trial into the store, unless that is the store, and let the unsaved rows name it there.

    Again after a failure, with all of them. Raise StoreAway, NotPlain, or OSError.
    """
    own = store.current()
    if own.is_here:
        return
    place, directory = own.place_of(trial.pk), trial_directory(trial)
    delivered = []
    try:
        for artifact in artifacts:
            path = f"{place}/{artifact.file.relative_to(directory).as_posix()}"
            delivered.append(path)
            own.put(artifact.file, path)
    except BaseException:
        own.give_back(delivered)
        raise
    for artifact, path in zip(artifacts, delivered, strict=True):
        artifact.path = path


def take_back(artifacts: Sequence[Artifact]) -> None:
    """Remove what was delivered for rows, where these are not stored after all: an answer of the database may have been lost."""
    own, paths = store.current(), [artifact.path for artifact in artifacts]
    if not own.is_here:
        named = set(Artifact.objects.filter(path__in=paths).values_list("path", flat=True))
        own.give_back([path for path in paths if path not in named])


def forget_delivered(trial: Trial) -> None:
    """Remove the directory of a trial from this machine, where the store is another place."""
    if not store.current().is_here:
        shutil.rmtree(trial_directory(trial), ignore_errors=True)


def _believed(artifact: Artifact | None) -> bytes | None:
    if artifact is None:
        return None
    try:
        return artifact.content()
    except (Tampered, NotPlain, OSError):
        return None


def _unpacked(content: bytes) -> dict[str, Any]:
    return dict(json.loads(zstandard.decompress(content)))
