"""Trials that other load disturbed: the condition that excludes them from statistics."""

from __future__ import annotations

from typing import Final

from django.apps import apps
from django.db.models import Exists, OuterRef, Q

from analysis.trust_level import FLAGGED
from experiments.models.states import counted, measured

DISTURBANCES: Final = "disturbances"
"""In the conditions of a trial: one sentence for each."""


def disturbed(trial: str = "") -> Q:
    """Return the condition of a trial that something else on its machines slowed."""
    # Trust first: it decides for most trials, and costs less to read.
    return Q(**{f"{trial}trust__in": FLAGGED, f"{trial}conditions__has_key": DISTURBANCES})


def excluded_as_disturbed(trial: str = "") -> Q:
    """Return the condition of a disturbed trial that is excluded, because another counted one of its configuration is clean."""
    others = apps.get_model("experiments", "Trial")._default_manager
    clean = others.filter(measured() & ~disturbed(), configuration=OuterRef(f"{trial}configuration"))
    return disturbed(trial) & counted(trial) & Q(Exists(clean))
