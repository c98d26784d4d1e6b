"""What was measured in a trial whose output its parser refused: kept in a file beside the output until a better parser reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from experiments.models import Trial, TrialResult

NAME: Final = "measured.json"
_KEPT: Final = ("measurements", "not_available", "trust", "trust_reasons", "environment", "conditions")


def keep(directory: Path, result: TrialResult) -> Path:
    """Write everything but the figures of merit, and return the file."""
    file = directory / NAME
    file.write_text(json.dumps({name: getattr(result, name) for name in _KEPT}))
    return file


def kept(trial: Trial) -> TrialResult | None:
    """Return what ``keep`` wrote for a trial; None where it wrote nothing or the file is gone."""
    artifact = trial.artifacts.filter(name=NAME, removed_at=None).first()
    if artifact is None or not artifact.file.is_file():
        return None
    return TrialResult(**json.loads(artifact.file.read_text()))
