"""Where the files of a trial lie, and how its stored analysis is written and read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import zstandard
from django.conf import settings

from experiments.models import Artifact, Trial

ANALYSIS_NAME: Final = "analysis.json.zst"


def trial_directory(trial: Trial) -> Path:
    """Return the directory of a trial's files. It need not exist."""
    return Path(settings.VAR) / "trials" / str(trial.pk)


def write_analysis(file: Path, analysis: dict[str, Any]) -> None:
    """Write the analysis of a capture as compressed JSON."""
    file.write_bytes(zstandard.compress(json.dumps(analysis, separators=(",", ":")).encode()))


def read_analysis(trial: Trial) -> dict[str, Any] | None:
    """Return the stored analysis of a trial's capture, or None when there is none."""
    artifact = trial.artifacts.filter(kind=Artifact.Kind.ANALYSIS, removed_at=None).first()
    if artifact is None or not artifact.file.is_file():
        return None
    loaded: dict[str, Any] = json.loads(zstandard.decompress(artifact.file.read_bytes()))
    return loaded
