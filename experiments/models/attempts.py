"""Trials that run once more: many by one statement, since ten thousand rows need not come here and go back; one that is handed back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from django.db import connection, models, transaction
from django.db.models import F

from experiments.models.states import ACTIVE, State

if TYPE_CHECKING:
    from experiments.models.trial import Trial

_TAKEN: Final = frozenset({"experiment", "configuration", "cluster", "kind", "repetition", "position"})
_ATTEMPT: Final = """
    (SELECT max(same.attempt) FROM experiments_trial same
    WHERE (same.configuration_id, same.kind, same.repetition) = (old.configuration_id, old.kind, old.repetition))
    + row_number() OVER (PARTITION BY old.configuration_id, old.kind, old.repetition ORDER BY old.attempt)
"""
"""A disturbed trial and its repeat are two attempts that both stay, and may be run again together."""
_NEW: Final = {"attempt": _ATTEMPT, "version": "experiment.version", "queued_at": "now()"}


def insert_attempts(trial: type[models.Model], keys: Sequence[int]) -> None:
    """Store a queued attempt after each of the trials with these keys; what is not theirs has its default."""
    columns, values, defaults = [], [], []
    for field in trial._meta.concrete_fields:
        if field.primary_key:
            continue
        columns.append(f'"{field.column}"')
        if field.name in _TAKEN:
            values.append(f'old."{field.column}"')
        elif field.name in _NEW:
            values.append(_NEW[field.name])
        else:
            values.append(f"%s::{field.db_type(connection)}")
            defaults.append(_default(field))
    statement = (
        f'INSERT INTO "{trial._meta.db_table}" ({", ".join(columns)}) SELECT {", ".join(values)} '  # noqa: S608 - names of columns
        f'FROM "{trial._meta.db_table}" old JOIN experiments_experiment experiment ON experiment.id = old.experiment_id '
        "WHERE old.id = ANY(%s)"
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, [*defaults, list(keys)])


def next_attempt(trial: Trial) -> Trial:
    """Return an unsaved row for this trial once more."""
    model = type(trial)
    same = {"configuration": trial.configuration_id, "kind": trial.kind, "repetition": trial.repetition}
    last = model._default_manager.filter(**same).aggregate(last=models.Max("attempt"))["last"] or trial.attempt
    return model(
        experiment_id=trial.experiment_id,
        configuration_id=trial.configuration_id,
        cluster_id=trial.cluster_id,
        kind=trial.kind,
        repetition=trial.repetition,
        version=trial.experiment.version,
        attempt=last + 1,
        position=trial.position,
    )


def _default(field: Any) -> Any:
    return field.get_db_prep_save(field.get_default(), connection)


def hand_back(trial: Trial, reason: str = "") -> bool:
    """Let an active trial wait as if nobody had taken it, which counts as no attempt: its worker or its hosts end, through no fault of
    the trial. The ``reason`` is its message until it is taken again.

    Return False, and change nothing, where it is over, somebody else's by now, or to be cancelled.
    """
    untaken: dict[str, Any] = {"preparing_at": None, "running_at": None, "analysing_at": None, "worker": ""}
    unknown: dict[str, Any] = {
        "command": [],
        "conditions": {},
        "certificate": None,
        "environment": None,
        "progress": {},
        "message": reason,
    }
    with transaction.atomic():
        mine = type(trial).objects.filter(pk=trial.pk, worker=trial.worker, state__in=ACTIVE, cancel_requested_at=None)
        if not mine.update(state=State.QUEUED, **untaken, **unknown, beats=F("beats") + 1, reaper_rounds=0):
            return False
        trial.leases.all().delete()
    trial.refresh_from_db()
    return True
