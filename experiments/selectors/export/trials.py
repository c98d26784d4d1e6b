"""Trials and their measurements as a table, in bounded memory.

Measurements come as arrays: rows of the ORM would be 60 times slower.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

import numpy as np
import polars as pl
from django.conf import settings
from django.db.models import QuerySet

from experiments.common import budget
from experiments.errors import CannotExplore
from experiments.metrics import described
from experiments.models import Configuration, Measurement, Trial
from experiments.models.states import Kind, State
from experiments.selectors.certificates import QUANTITIES
from experiments.selectors.counted_values import Numbers, SentValues, read_values
from experiments.selectors.export.arrays import Arrays, ExportedTrials
from experiments.selectors.export.columns import Column
from experiments.selectors.export.facts import Facts
from experiments.selectors.export.pipeline import one_behind

PIECE: Final = 4000
LONG_PIECE: Final = 250
"""Trials per frame, wide and long."""
_MOST_COLUMNS: Final = 20_000
_MOST_LONG: Final = 2000
"""Columns of a table of trials, and of one of measurements, where a trial has 10 000 rows at most."""
_MOST_CELLS: Final = 4_000_000
"""Cells of the trials that are read at once."""
_FRAME_BYTES: Final = 32 << 20
"""Text of a frame: each row has all parameters of its configuration, which may be long."""
_TIME: Final = pl.Datetime("us", "UTC")
_TEXT, _WHOLE, _NUMBER, _YES = pl.String(), pl.Int64(), pl.Float64(), pl.Boolean()
_MPI: Final = "@mpi"
"""Suffix of metrics over MPI traffic."""


def _column(name: str, kind: pl.DataType, definition: str) -> Column:
    return Column(name, kind, name.replace("_", " ").capitalize(), "", definition)


_FIXED: Final = (
    _column("experiment", _TEXT, "Slug of the experiment."),
    _column("name", _TEXT, "Name of the experiment."),
    _column("project", _TEXT, "Project of the experiment."),
    _column("workload", _TEXT, "Workload."),
    _column("cluster", _TEXT, "Cluster; empty for printed results."),
    _column("trial", _WHOLE, "Number of the trial."),
    _column("url", _TEXT, "Page of the trial."),
    _column("configuration", _WHOLE, "Number of the point of the sweep."),
    _column("hash", _TEXT, "Identifies the configuration in all experiments."),
    _column("kind", _TEXT, f"Purpose of the trial: {', '.join(Kind.values)}."),
    _column("repetition", _WHOLE, "Repetition of its configuration."),
    _column("attempt", _WHOLE, "Attempt of this repetition."),
    _column("version", _WHOLE, "Version of its specification."),
    _column("state", _TEXT, f"State: {', '.join(State.values)}."),
    _column("counts", _YES, "True if the trial is in statistics."),
    _column("excluded", _TEXT, "Reason why statistics exclude the trial; empty if they use it."),
    _column("queued_at", _TIME, "Time at which it was queued."),
    _column("running_at", _TIME, "Time at which its program was launched."),
    _column("ended_at", _TIME, "Time at which it ended."),
    _column("trust", _TEXT, "Trust in its capture; empty without one."),
    _column("link_kept", _YES, "True if its link was certified as requested; empty if it was not measured."),
)
_UNITS: Final = {"link.bandwidth": "bit/s", "link.delay": "s", "link.jitter": "s", "link.loss": "1", "link.mtu": "B"}
_ACHIEVED: Final = tuple(
    Column(f"achieved.{name}", _NUMBER, f"Achieved {quantity}", _UNITS.get(name, "1"), "Measured before the trial.")
    for name, quantity in QUANTITIES.items()
)
_SIZE: Final = (
    _column("parameter.hosts", _WHOLE, "Hosts of the trial."),
    _column("parameter.ranks", _WHOLE, "Ranks of the trial."),
)
_NAMES: Final = [
    "experiment",
    "workload",
    "cluster",
    "trial",
    "configuration",
    "kind",
    "repetition",
    "attempt",
    "counts",
    "excluded",
    "trust",
    "link_kept",
]
_BRIEF: Final = (*(column for column in _FIXED if column.name in _NAMES), *_SIZE)
"""Columns of a row per measurement, and of brief trials; the table of trials has all."""
_LONG: Final = (
    _column("metric", _TEXT, "Metric."),
    _column("scope", _TEXT, "Traffic: all, or of MPI alone."),
    Column("value", _NUMBER, "Value", "", "In the unit of the row."),
    _column("unit", _TEXT, 'Base unit; "1" for counts and ratios.'),
)


def trials_of(configurations: QuerySet[Configuration], *, every: bool) -> QuerySet[Trial]:
    """Return the counted trials of configurations, or ``every`` trial."""
    trials = Trial.objects.filter(configuration__in=configurations.order_by().values("pk"))
    return trials if every else trials.counted()


class TrialTable:
    """The table of trials: one row per trial, or (``long``) per measurement.

    ``brief`` names the parameters and metrics next to the first columns; empty: all.

    ``columns`` describe the columns of the frames that ``pieces`` yields, in order of trial keys. Links begin with ``address``, by default
    that of the settings. Raise CannotExplore for too many columns.
    """

    def __init__(
        self, trials: QuerySet[Trial], *, long: bool = False, brief: Collection[str] = (), address: str = ""
    ) -> None:
        chosen = ExportedTrials.of(trials)
        self._trials, self._long = chosen.trials, long
        self._facts, self._arrays = Facts(chosen, address or settings.PUBLIC_ADDRESS), Arrays(chosen)
        self._fixed = {column.name: column for column in (*_FIXED, *_ACHIEVED, *_SIZE, *self._facts.parameters)}
        # An imported metric may have the name of another column: then it is in the rows of measurements only.
        measured = {(column := _metric(*name)).name: column for name in self._arrays.measured}
        self.columns: tuple[Column, ...] = (
            (*_BRIEF, *self._facts.parameters, *_LONG)
            if long
            else tuple({**self._fixed, **measured, **self._fixed}.values())
        )
        if brief:
            named = {*(column.name for column in _BRIEF), *brief}
            self.columns = tuple(column for column in self.columns if column.name in named)
        if len(self.columns) > (most := _MOST_LONG if long else _MOST_COLUMNS):
            raise CannotExplore(f"The table has more than {most} columns: choose fewer experiments.")

    def pieces(self) -> Iterator[pl.DataFrame]:
        """Yield the rows in frames of bounded size."""
        for frame in one_behind(self._frame, self._read()):
            longest = frame.select(pl.sum_horizontal(pl.col(pl.String).str.len_bytes()).max()).item() or 1
            yield from frame.iter_slices(max(1, _FRAME_BYTES // longest))

    def _read(self) -> Iterator[tuple[pl.DataFrame, SentValues]]:
        cells = len(self.columns) * (len(self._arrays.measured) or 1 if self._long else 1)
        step = min(LONG_PIECE if self._long else PIECE, max(1, _MOST_CELLS // cells))
        for first in range(0, len(self._trials), step):
            budget.check()
            trials = self._facts.of(self._trials[first : first + step])
            yield trials, read_values(trials["trial"].to_list())

    def _frame(self, piece: tuple[pl.DataFrame, SentValues]) -> pl.DataFrame:
        trials, sent = piece
        values = self._arrays.of(trials["trial"].to_numpy(), sent)
        frame = self._long_frame(trials, values) if self._long else self._wide_frame(trials, values)
        return frame.select(pl.col(column.name).cast(column.kind) for column in self.columns)

    def _long_frame(self, trials: pl.DataFrame, values: Numbers) -> pl.DataFrame:
        """Return a row per measurement."""
        places, rows = np.nonzero(~np.isnan(values.T))[::-1]
        scopes, metrics = zip(*self._arrays.measured, strict=True) if self._arrays.measured else ((), ())
        columns = {"metric": metrics, "scope": scopes, "unit": [described(metric).unit for metric in metrics]}
        named = [pl.Series(name, words, dtype=_TEXT).gather(places) for name, words in columns.items()]
        return trials[rows].hstack([*named, pl.Series("value", values[places, rows])])

    def _wide_frame(self, trials: pl.DataFrame, values: Numbers) -> pl.DataFrame:
        """Return the measurements next to each trial."""
        names = [_metric_name(scope, metric) for scope, metric in self._arrays.measured]
        rows = {name: row for name, row in zip(names, values, strict=True) if name not in self._fixed}
        return trials.select(*self._fixed).hstack(
            [pl.Series(name, row, nan_to_null=True) for name, row in rows.items()]
        )


def _metric_name(scope: str, metric: str) -> str:
    return metric if scope == Measurement.Scope.ALL else metric + _MPI


def _metric(scope: str, metric: str) -> Column:
    description = described(metric)
    label = description.label if scope == Measurement.Scope.ALL else f"{description.label}, MPI traffic"
    return Column(_metric_name(scope, metric), _NUMBER, label, description.unit, description.definition)
