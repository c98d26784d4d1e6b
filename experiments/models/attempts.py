"""Trials that run once more, many by one statement: ten thousand rows are not read and written back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.db import connection, models

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


def _default(field: Any) -> Any:
    return field.get_db_prep_save(field.get_default(), connection)
