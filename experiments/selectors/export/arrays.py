"""Measurements of trials as a matrix, read from the array of each trial."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet

from experiments.metrics import in_order
from experiments.models import Measurement, Trial, ValueNames
from experiments.selectors.counted_values import Numbers, SentValues, values_by_name

Keys = npt.NDArray[np.int64]
_CHOSEN: Final = """
    WITH chosen (trial, configuration) AS MATERIALIZED ({})
    SELECT (SELECT string_agg(int8send(trial), '' ORDER BY trial) FROM chosen),
        ARRAY(SELECT DISTINCT configuration FROM chosen),
        ARRAY(SELECT DISTINCT v.names_id FROM chosen JOIN experiments_trialvalues v ON v.trial_id = chosen.trial)
"""
"""Subqueries: aggregates with DISTINCT sort all trials."""


@dataclass(frozen=True, slots=True)
class ExportedTrials:
    """The trials of an export (sorted keys), their configurations and value names."""

    trials: Keys
    configurations: list[int]
    names: list[int]

    @classmethod
    def of(cls, trials: QuerySet[Trial]) -> ExportedTrials:
        try:
            sql, parameters = trials.order_by().values_list("pk", "configuration_id").query.sql_with_params()
        except EmptyResultSet:
            return cls(np.empty(0, np.int64), [], [])
        with connection.cursor() as cursor:
            cursor.execute(_CHOSEN.format(sql), parameters)
            keys, configurations, names = cursor.fetchone()
        return cls(np.frombuffer(keys or b"", ">i8").astype(np.int64), configurations, names)


class Arrays:
    """The measurements of trials; ``measured`` are (scope, metric) in display order."""

    def __init__(self, chosen: ExportedTrials) -> None:
        rows = ValueNames.objects.filter(pk__in=chosen.names).values_list("names", flat=True)
        names_in_use = {name for names in rows for name in names}
        order = in_order({name.partition(" ")[2] for name in names_in_use})
        self.measured = [
            (s, metric) for metric in order for s in Measurement.Scope.values if f"{s} {metric}" in names_in_use
        ]
        self._places = {f"{scope} {metric}": index for index, (scope, metric) in enumerate(self.measured)}

    def of(self, trials: Keys, sent: SentValues) -> Numbers:
        """Return a row per ``measured`` and a column per trial (sorted); NaN: no value."""
        table = np.full((len(self.measured), len(trials)), np.nan)
        there, values = values_by_name(sent)
        columns = np.searchsorted(trials, there)
        for name, numbers in values.items():
            if name in self._places:  # measurements that were added meanwhile have no row
                table[self._places[name], columns] = numbers
        return table
