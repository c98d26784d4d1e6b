"""Trials that other load disturbed: which of them statistics leave out, and the one repeat that each is given by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.apps import apps
from django.db.models import Exists, Max, OuterRef, Q

from analysis.trust_level import FLAGGED
from experiments.models.states import Kind, counted, measured

if TYPE_CHECKING:
    from experiments.models.trial import Trial

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


def is_repeat(trial: Trial) -> bool:
    """Whether a trial was queued by itself, because an earlier attempt, which stays, was disturbed. No query for a first attempt."""
    if trial.attempt == 1:
        return False
    same = {"configuration": trial.configuration_id, "kind": trial.kind, "repetition": trial.repetition}
    earlier = type(trial)._default_manager.filter(measured() & disturbed(), **same, attempt__lt=trial.attempt)
    return earlier.exists()


def queue_repeat(trial: Trial) -> Trial | None:
    """Queue a disturbed trial once more, last in the order of its experiment, inside the transaction that ends it.

    The disturbed one stays: the design still has as many repetitions as were asked for. Return None where the specification
    wants no repeat, the trial was cancelled or left the design, or its repetition has another trial: one repeat each, no more.
    The caller holds the lock of the experiment.
    """
    experiment = trial.experiment
    wanted = experiment.specification.get("disturbed", "repeat") == "repeat"
    left = trial.superseded or trial.cancel_requested_at is not None or not trial.configuration.in_design
    if trial.kind != Kind.MEASURED or not wanted or left:
        return None
    same = {"configuration": trial.configuration_id, "kind": trial.kind, "repetition": trial.repetition}
    if experiment.trials.filter(**same, superseded=False).exclude(pk=trial.pk).exists():
        return None
    repeat = trial.next_attempt()
    repeat.position = 1 + (experiment.trials.aggregate(last=Max("position"))["last"] or 0)
    repeat.save(force_insert=True)
    return repeat
