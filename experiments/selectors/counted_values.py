"""Values of an experiment's counted trials, read from the array of each trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import psycopg
from django.db import connection

from experiments.common.sent_arrays import keys_text, numbers_of
from experiments.models import Experiment, Trial, TrialValues, ValueNames

Numbers = npt.NDArray[np.float64]
SentValues = list[tuple[list[str], bytes, bytes]]
"""Names of values, and the keys and arrays of the trials that have them."""
_VALUES: Final = """
    WITH own AS MATERIALIZED ({trials}),
    places AS MATERIALIZED (
        SELECT id, ARRAY[{places}]::int[] AS at FROM experiments_valuenames
    )
    SELECT own.id, own.configuration_id, own.trust, array_send(ARRAY[{numbers}]::float8[])
    FROM own
    JOIN experiments_trialvalues v ON v.trial_id = own.id
    JOIN places ON places.id = v.names_id
    ORDER BY own.repetition, own.id
"""
"""The positions of the metrics are looked up once per list of names, for all lists: finding those of these trials is slower."""
_NUMBER: Final = "coalesce(v.numbers[places.at[{position}]], 'NaN')"
"""Stored values are finite, so NaN marks gaps, and all arrays have one length."""
_CHUNK: Final = 1000
_WHOLE: Final = """
    SELECT n.names, v.keys, v.numbers
    FROM (
        SELECT names_id, string_agg(int8send(trial_id), '') AS keys, string_agg(array_send(numbers), '') AS numbers
        FROM experiments_trialvalues WHERE trial_id = ANY(%s::bigint[]) GROUP BY names_id
    ) v JOIN experiments_valuenames n ON n.id = v.names_id
"""
"""One row for all trials with the same names; both aggregates have the same order. Grouped after the join, all arrays were sorted."""


@dataclass(frozen=True, slots=True)
class CountedValues:
    """Counted trials by repetition, with a row of ``numbers`` each; NaN: no value."""

    metrics: Sequence[str]
    trials: Sequence[int]
    configurations: Sequence[int]
    trust: Sequence[str]
    numbers: Numbers

    def by_configuration(self) -> dict[int, list[int]]:
        """Return the rows of each configuration's trials."""
        places: dict[int, list[int]] = {}
        for row, configuration in enumerate(self.configurations):
            places.setdefault(configuration, []).append(row)
        return places


def values_of_trials(trials: Sequence[int], scope: str) -> tuple[list[int], dict[str, Numbers]]:
    """Return sorted trials with values, and metric -> values (NaN: none). One query."""
    there, values = values_by_name(read_values(trials))
    prefix = f"{scope} "
    return there, {name.removeprefix(prefix): numbers for name, numbers in values.items() if name.startswith(prefix)}


def read_values(trials: Sequence[int]) -> SentValues:
    """Return the values of trials as PostgreSQL sends them. One query."""
    with _binary_cursor() as cursor:
        cursor.execute(_WHOLE, [keys_text(trials)])
        return list(cursor.fetchall())


def values_by_name(sent: SentValues) -> tuple[list[int], dict[str, Numbers]]:
    """Return the sorted trials, and values by scope and metric, separated by a blank."""
    groups = [(names, np.frombuffer(keys, ">i8"), numbers_of(rows, len(keys) // 8)) for names, keys, rows in sent]
    there = np.sort(np.concatenate([keys for _, keys, _ in groups])) if groups else np.empty(0, np.int64)
    values: dict[str, Numbers] = {}
    for names, keys, numbers in groups:
        rows = np.searchsorted(there, keys)
        for name, column in zip(names, numbers.T, strict=True):
            values.setdefault(name, np.full(len(there), np.nan))[rows] = column
    return there.tolist(), values


def _binary_cursor() -> Any:
    """Return a cursor for long arrays.

    As text, which the cursors of Django receive, they take twice the bytes and time.
    """
    connection.ensure_connection()
    cursor = psycopg.Cursor(connection.connection)
    cursor.format = psycopg.pq.Format.BINARY
    return connection._prepare_cursor(cursor)  # type: ignore[attr-defined]  # as for its own cursors


def measured_metrics(experiment: Experiment, scope: str) -> list[str]:
    """Return the metrics that any trial of an experiment has. One query."""
    used = TrialValues.objects.filter(trial__experiment=experiment).order_by().values("names")
    rows = ValueNames.objects.filter(pk__in=used).values_list("names", flat=True)
    names = {name for names in rows for name in names}
    return sorted(name.removeprefix(f"{scope} ") for name in names if name.startswith(f"{scope} "))


def counted_values(experiment: Experiment, metrics: Sequence[str], scope: str) -> CountedValues:
    """Return the values of the counted trials. One query; none without metrics."""
    if not metrics:
        return CountedValues((), (), (), (), np.empty((0, 0)))
    trials = Trial.objects.counted().filter(experiment=experiment).order_by()
    sql, parameters = trials.values("id", "configuration_id", "trust", "repetition").query.sql_with_params()
    statement = _VALUES.format(
        trials=sql,
        places=", ".join(["array_position(names, %s)"] * len(metrics)),
        numbers=", ".join(_NUMBER.format(position=position) for position in range(1, len(metrics) + 1)),
    )
    columns: list[tuple[int, int, str]] = []
    numbers = [np.empty((0, len(metrics)))]
    with connection.chunked_cursor() as cursor:  # the arrays of 10 000 trials take 90 MB at once
        cursor.execute(statement, [*parameters, *(f"{scope} {metric}" for metric in metrics)])
        while rows := cursor.fetchmany(_CHUNK):
            columns += [row[:3] for row in rows]
            numbers.append(numbers_of(b"".join(row[3] for row in rows), len(rows)))
    keys, configurations, trust = zip(*columns, strict=True) if columns else ((), (), ())
    return CountedValues(metrics, keys, configurations, trust, np.concatenate(numbers))
