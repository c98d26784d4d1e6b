"""States of trials and experiments, and the conditions of counted trials."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from django.apps import apps
from django.db import models
from django.db.models import Exists, OuterRef, Q

from analysis.trust_level import FLAGGED


class Tone(StrEnum):
    """The severity of a state, as a class of the style sheet."""

    NONE = ""
    TODO = "todo"
    RUN = "run"
    OK = "ok"
    WARN = "warn"
    BAD = "bad"


class State(models.TextChoices):
    """The states of a trial."""

    QUEUED = "queued", "Queued"
    PREPARING = "preparing", "Preparing"
    RUNNING = "running", "Running"
    ANALYSING = "analysing", "Analysing"
    FINISHED = "finished", "Finished"
    FAILED = "failed", "Failed"
    ERRORED = "errored", "Errored"
    CANCELLED = "cancelled", "Cancelled"
    LOST = "lost", "Lost"

    @property
    def tone(self) -> Tone:
        return _TONES[self]


ACTIVE: Final = (State.PREPARING, State.RUNNING, State.ANALYSING)
UNFINISHED: Final = (State.QUEUED, *ACTIVE)
FAILED: Final = (State.FAILED, State.ERRORED, State.LOST)
OVER_TIME: Final = "did not end within the time limit"
"""Words in the message of a trial that was stopped at its time limit."""
NO_ROOM: Final = "Waiting for disk space"
"""First words in the message of a waiting trial that the disk has no room for."""
WITHOUT_RESULT: Final = (*FAILED, State.CANCELLED)
_TONES: Final = {
    State.QUEUED: Tone.TODO,
    **dict.fromkeys(ACTIVE, Tone.RUN),
    State.FINISHED: Tone.OK,
    State.FAILED: Tone.BAD,
    State.ERRORED: Tone.BAD,
    State.CANCELLED: Tone.NONE,
    State.LOST: Tone.WARN,
}


class Kind(models.TextChoices):
    """The purpose of a trial, in display order."""

    MEASURED = "measured", "Measured"
    WARMUP = "warmup", "Warm-up"
    CONTROL = "control", "Without capture"
    IDEAL = "ideal", "On an ideal network"
    SEARCH = "search", "Search"


def measured(trial: str = "", *kinds: Kind) -> Q:
    """Return the condition of a finished, measured trial that no attempt replaced.

    ``trial`` is the path from another table (``"trial__"``); ``kinds`` replace measured.
    """
    kind = {"kind__in": kinds} if kinds else {"kind": Kind.MEASURED}
    fields = {"state": State.FINISHED, **kind, "superseded": False}
    return Q(**{f"{trial}{name}": value for name, value in fields.items()})


def counted(trial: str = "", *kinds: Kind) -> Q:
    """Return the condition of a trial in statistics: ``measured`` and in the design."""
    return measured(trial, *kinds) & Q(**{f"{trial}configuration__in_design": True})


DISTURBANCES: Final = "disturbances"
"""Key in a trial's conditions, with one sentence per disturbance."""


METRIC_SOURCES: Final = "metric_sources"
"""Key in a trial's conditions, with trust and metrics of each source of counters."""


def disturbed(trial: str = "") -> Q:
    """Return the condition of a trial that other load slowed."""
    # Trust first: it excludes most trials and is cheaper to read.
    return Q(**{f"{trial}trust__in": FLAGGED, f"{trial}conditions__has_key": DISTURBANCES})


def over_time(trial: str = "") -> Q:
    """Return the condition of a trial that met its time limit."""
    return Q(**{f"{trial}state": State.FAILED, f"{trial}message__contains": OVER_TIME})


def excluded_as_disturbed(trial: str = "") -> Q:
    """Return the condition of a disturbed trial with a clean one of its configuration."""
    others = apps.get_model("experiments", "Trial")._default_manager
    clean = others.filter(measured() & ~disturbed(), configuration=OuterRef(f"{trial}configuration"))
    return disturbed(trial) & counted(trial) & Q(Exists(clean))


BUDGET_SPENT: Final = "Cancelled: the budget of the goal is spent"
"""Words in the message of a waiting trial that a goal cancelled."""
NOT_REQUESTED: Final = "Cancelled: only the first trial was requested."
"""Message of the trials of a design of which only the first trial was started."""


class Status(StrEnum):
    """The state of an experiment."""

    EMPTY = "empty"
    WAITING = "waiting"
    RUNNING = "running"
    HELD = "held"
    PAUSED = "paused"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Hold(models.TextChoices):
    """The hold on an experiment's queued trials."""

    NONE = "", "Not on hold"
    HELD = "held", "On hold: its first trial failed"
    RELEASED = "released", "Resumed by a user"
    PAUSED = "paused", "Rounds paused by a user"


BLOCKING: Final = (Hold.HELD, Hold.PAUSED)
"""Holds that keep queued trials from starting."""


class Priority(models.IntegerChoices):
    """The order of a project's experiments; other projects are unaffected."""

    LOW = -1, "Low"
    NORMAL = 0, "Normal"
    HIGH = 1, "High"
