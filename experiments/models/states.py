"""The life of a trial, what it is for, and which trials count."""

from __future__ import annotations

from typing import Final

from django.db import models
from django.db.models import Q


class State(models.TextChoices):
    """The life of a trial (ARCHITECTURE: States)."""

    QUEUED = "queued", "Waiting"
    PREPARING = "preparing", "Preparing"
    RUNNING = "running", "Running"
    ANALYSING = "analysing", "Analysing"
    FINISHED = "finished", "Finished"
    FAILED = "failed", "Failed"
    ERRORED = "errored", "Errored"
    CANCELLED = "cancelled", "Cancelled"
    LOST = "lost", "Lost"


ACTIVE: Final = (State.PREPARING, State.RUNNING, State.ANALYSING)
UNFINISHED: Final = (State.QUEUED, *ACTIVE)
WITHOUT_RESULT: Final = (State.FAILED, State.ERRORED, State.LOST, State.CANCELLED)


class Kind(models.TextChoices):
    """What a trial is for."""

    MEASURED = "measured", "Measured"
    WARMUP = "warmup", "Warm-up"
    CONTROL = "control", "Without capture"


def measured(trial: str = "", *kinds: Kind) -> Q:
    """Return the condition of a trial that tells of its configuration: finished, measured, not replaced by a newer attempt.

    ``trial`` leads to it from another table: ``"trial__"``. ``kinds`` stand for measured where they are given.
    """
    kind = {"kind__in": kinds} if kinds else {"kind": Kind.MEASURED}
    wanted = {"state": State.FINISHED, **kind, "superseded": False}
    return Q(**{f"{trial}{name}": value for name, value in wanted.items()})


def counted(trial: str = "", *kinds: Kind) -> Q:
    """Return the condition of a trial that statistics are made of: ``measured``, and the current version asks for its point."""
    return measured(trial, *kinds) & Q(**{f"{trial}configuration__in_design": True})
