"""A trial in a worker's hands, or about to be, in one line."""

from __future__ import annotations

from typing import Any

from dashboard.labels import parameters_sentence, trial_role
from experiments.models import Trial


def running_entry(trial: Trial) -> dict[str, Any]:
    """A running trial with its point of the sweep in words."""
    swept = list(trial.experiment.specification.get("sweep", {}))
    point = parameters_sentence(trial.configuration.parameters, swept or ["hosts"])
    return {"trial": trial, "point": point, "role": trial_role(trial.kind, trial.repetition)}
