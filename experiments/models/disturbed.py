"""Trials that other load disturbed: the condition that excludes them from statistics, and their automatic repeat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from django.apps import apps
from django.db.models import Exists, Max, OuterRef, Q

from analysis.trust_level import FLAGGED
from experiments.models.attempts import next_attempt
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


def repeats_among(trials: Sequence[Trial]) -> set[int]:
    """Return the keys of the trials that repeat a disturbed earlier attempt, which stays.

    One query; none where all are first attempts.
    """
    later = [trial for trial in trials if trial.attempt > 1]
    if not later:
        return set()
    manager = type(later[0])._default_manager
    earlier = manager.filter(measured() & disturbed(), configuration__in={trial.configuration_id for trial in later})
    columns = ("configuration_id", "kind", "repetition")
    first = {tuple(key): attempt for *key, attempt in earlier.order_by("-attempt").values_list(*columns, "attempt")}
    return {
        trial.pk
        for trial in later
        if first.get((trial.configuration_id, trial.kind, trial.repetition), trial.attempt) < trial.attempt
    }


def queue_repeat(trial: Trial) -> Trial | None:
    """Queue a disturbed trial once more, last in the order of its experiment, inside the transaction that ends it.

    The disturbed trial stays, and the design keeps its number of repetitions. Return None if the specification wants no
    repeat, the trial was cancelled or left the design, or its repetition has another trial: each has one repeat at most.
    The caller holds the lock of the experiment.
    """
    experiment = trial.experiment
    is_wanted = experiment.specification.get("disturbed", "repeat") == "repeat"
    is_outdated = trial.superseded or trial.cancel_requested_at is not None or not trial.configuration.in_design
    if trial.kind != Kind.MEASURED or not is_wanted or is_outdated:
        return None
    same = {"configuration": trial.configuration_id, "kind": trial.kind, "repetition": trial.repetition}
    if experiment.trials.filter(**same, superseded=False).exclude(pk=trial.pk).exists():
        return None
    repeat = next_attempt(trial)
    repeat.position = 1 + (experiment.trials.aggregate(last=Max("position"))["last"] or 0)
    repeat.save(force_insert=True)
    return repeat
