"""Which trials leave, asked for once: a filter of the explorer costs more than any column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet

from experiments.models import Trial

Keys = npt.NDArray[np.int64]
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
