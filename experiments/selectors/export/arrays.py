"""Everything measured in trials as a table of numbers, read from the array of each trial (``TrialValues``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet

from experiments.common.sent_arrays import numbers_of
from experiments.metrics import in_order
from experiments.models import Measurement, Trial, ValueNames

Keys = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]
_VALUES: Final = """
    SELECT names_id, string_agg(int8send(trial_id), ''), string_agg(array_send(numbers), '')
    FROM experiments_trialvalues WHERE trial_id = ANY(%s) GROUP BY names_id
"""
"""One value each for all trials whose arrays have the same names: a row of its own for each trial costs Python ten times as much. Both
are aggregated in the order in which the rows are read."""


_CHOSEN: Final = """
    SELECT string_agg(int8send(chosen.trial), '' ORDER BY chosen.trial), array_agg(DISTINCT chosen.configuration),
        array_agg(DISTINCT v.names_id) FILTER (WHERE v.names_id IS NOT NULL)
    FROM ({}) AS chosen (trial, configuration) LEFT JOIN experiments_trialvalues v ON v.trial_id = chosen.trial
"""


@dataclass(frozen=True, slots=True)
class Chosen:
    """``trials`` in the order of their numbers (8 bytes each), their configurations, and the lists of names of their values."""

    trials: Keys
    configurations: list[int]
    names: list[int]

    @classmethod
    def of(cls, trials: QuerySet[Trial]) -> Chosen:
        try:
            asked, parameters = trials.order_by().values_list("pk", "configuration_id").query.sql_with_params()
        except EmptyResultSet:
            return cls(np.empty(0, np.int64), [], [])
        with connection.cursor() as cursor:
            cursor.execute(_CHOSEN.format(asked), parameters)
            keys, configurations, names = cursor.fetchone()
        return cls(np.frombuffer(keys or b"", ">i8").astype(np.int64), configurations or [], names or [])


class Arrays:
    """The measurements of a set of trials; ``measured`` are (scope, metric) of what any of them has, in the order that readers expect."""

    def __init__(self, chosen: Chosen) -> None:
        self._names = dict(ValueNames.objects.filter(pk__in=chosen.names).values_list("pk", "names"))
        there = {
            (scope, metric) for names in self._names.values() for scope, _, metric in (n.partition(" ") for n in names)
        }
        order = in_order({metric for _, metric in there})
        self.measured = [
            (scope, metric) for metric in order for scope in Measurement.Scope.values if (scope, metric) in there
        ]
        self._places = {f"{scope} {metric}": place for place, (scope, metric) in enumerate(self.measured)}

    def of(self, trials: Keys) -> Numbers:
        """Return a row for each of ``measured`` with the values of these trials (in rising order), NaN where there is none."""
        table = np.full((len(self.measured), len(trials)), np.nan)
        with connection.cursor() as cursor:
            cursor.execute(_VALUES, [trials.tolist()])
            for names, keys, sent in cursor.fetchall():
                columns = np.searchsorted(trials, np.frombuffer(keys, ">i8"))
                numbers = numbers_of(sent, len(columns))
                # What others add meanwhile has no column.
                known = [
                    (place, self._places[name]) for place, name in enumerate(self._read(names)) if name in self._places
                ]
                here, there = np.array(known, np.intp).reshape(-1, 2).T
                table[np.ix_(there, columns)] = numbers[:, here].T
        return table

    def _read(self, names: int) -> list[str]:
        if names not in self._names:
            self._names[names] = ValueNames.objects.values_list("names", flat=True).get(pk=names)
        return self._names[names]
