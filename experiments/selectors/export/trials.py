"""Trials and everything measured in them as a table, piece by piece, so that memory stays bounded.

PostgreSQL copies the measurements out as they lie there and polars joins them: the ORM, row by row, is twenty times slower.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import polars as pl
from django.db import connection
from django.db.models import BigIntegerField, Func, JSONField, QuerySet
from django.db.models.fields.json import KeyTransform
from django.urls import reverse

from analysis.catalogue import METRICS
from experiments.metrics import described, in_order
from experiments.models import Configuration, Measurement, Trial
from experiments.models.states import Kind, State, counted
from experiments.selectors.certificates import QUANTITIES
from experiments.selectors.export.columns import Column
from experiments.spec import budget

PIECE: Final = 1000
LONG_PIECE: Final = 250
"""Trials in memory at once; where each of their measurements is a row, fewer."""
_TIME: Final = pl.Datetime("us", "UTC")
_TEXT, _WHOLE, _NUMBER, _YES = pl.String(), pl.Int64(), pl.Float64(), pl.Boolean()
_MPI: Final = "@mpi"
"""After the id of a metric over the traffic of MPI alone."""


def _column(name: str, kind: pl.DataType, definition: str) -> Column:
    return Column(name, kind, name.replace("_", " ").capitalize(), "", definition)


_FIXED: Final = (
    _column("experiment", _TEXT, "Address of the experiment."),
    _column("name", _TEXT, "Name of the experiment."),
    _column("project", _TEXT, "Project of the experiment."),
    _column("workload", _TEXT, "What was run."),
    _column("cluster", _TEXT, "Where it ran; empty where that was printed only."),
    _column("trial", _WHOLE, "Number of the trial."),
    _column("url", _TEXT, "Page of the trial."),
    _column("configuration", _WHOLE, "Number of the point of the sweep."),
    _column("hash", _TEXT, "Identifies the configuration in all experiments."),
    _column("kind", _TEXT, f"What the trial was for: {', '.join(Kind.values)}."),
    _column("repetition", _WHOLE, "Which repetition of its configuration."),
    _column("attempt", _WHOLE, "Which attempt at this repetition."),
    _column("version", _WHOLE, "Version of the specification that asked for it."),
    _column("state", _TEXT, f"How it stands: {', '.join(State.values)}."),
    _column("counts", _YES, "Whether statistics are made of it."),
    _column("queued_at", _TIME, "When it was asked for."),
    _column("running_at", _TIME, "When its program was launched."),
    _column("ended_at", _TIME, "When it ended."),
    _column("trust", _TEXT, "How far its capture may be believed; empty without one."),
    _column("link_kept", _YES, "Whether its link was measured to be as asked; empty where it was not measured."),
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
_BRIEF: Final = tuple(
    column
    for column in (*_FIXED, *_SIZE)
    if column.name
    in {
        "experiment",
        "workload",
        "cluster",
        "trial",
        "configuration",
        "kind",
        "repetition",
        "counts",
        "trust",
        "link_kept",
    }
    or column in _SIZE
)
"""Beside a single measurement; the rest stands in the table of trials."""
_LONG: Final = (
    _column("metric", _TEXT, "What was measured."),
    _column("scope", _TEXT, "Traffic that it is about: all, or MPI's alone."),
    Column("value", _NUMBER, "Value", "", "In the unit beside it."),
    _column("unit", _TEXT, 'Base unit; "1" for counts and ratios.'),
)
_VALUES: Final = """
    SELECT string_agg(int8send(trial_id), ''), string_agg(scope || ' ' || metric, ','), string_agg(float8send(value), '')
    FROM experiments_measurement WHERE trial_id = ANY(%s)
"""
"""Three columns as one value each: a row of its own for each measurement costs Python ten times as much. All three are aggregated in
the order in which the rows are read."""
_KNOWN: Final = """
    WITH RECURSIVE known AS (
        (SELECT metric, scope FROM experiments_measurement ORDER BY metric, scope LIMIT 1)
        UNION ALL
        SELECT later.metric, later.scope FROM known, LATERAL (
            SELECT metric, scope FROM experiments_measurement
            WHERE (metric, scope) > (known.metric, known.scope) ORDER BY metric, scope LIMIT 1
        ) AS later
    )
    SELECT scope, metric FROM known
"""
"""From one metric to the next in the index, without the rows between."""
_FEW: Final = 2000


class _Microseconds(Func):
    """A moment as a whole number since 1970: read ten times faster than a date."""

    template = "(extract(epoch FROM %(expressions)s) * 1000000)::bigint"
    output_field = BigIntegerField()


class _Achieved(Func):
    """Quantity -> what was achieved, of a certificate: the mean over its directions."""

    template = """(
        SELECT jsonb_object_agg(quantity, achieved) FROM (
            SELECT one ->> 'quantity' AS quantity, avg((one ->> 'achieved')::float8) AS achieved
            FROM jsonb_array_elements(%(expressions)s -> 'rows') AS one
            WHERE jsonb_typeof(one -> 'achieved') = 'number' GROUP BY 1
        ) AS measured)"""
    output_field = JSONField()


def trials_of(configurations: QuerySet[Configuration], *, every: bool) -> QuerySet[Trial]:
    """The trials of configurations: those that statistics are made of, or ``every`` one, of whatever state and kind."""
    own = Trial.objects.filter(configuration__in=configurations.order_by().values("pk"))
    return own if every else own.filter(counted())


class TrialTable:
    """The table of a set of trials: wide, one row per trial, or ``long``, one row per measurement.

    ``columns`` say what each column means; ``pieces`` yields frames of exactly these columns, trials in the order of their
    numbers.
    """

    def __init__(self, trials: QuerySet[Trial], *, long: bool = False) -> None:
        self._trials, self._long = trials.order_by("pk"), long
        self._parameters = _parameters(trials)
        self._measured = _measured(trials)
        self.columns: tuple[Column, ...] = (
            (*_BRIEF, *self._parameters, *_LONG)
            if long
            else (*_FIXED, *_ACHIEVED, *_SIZE, *self._parameters, *(_metric(*each) for each in self._measured))
        )

    def pieces(self) -> Iterator[pl.DataFrame]:
        """Yield the rows of so many trials at a time. Raise TooLarge where a request has used up its processor time."""
        schema = {column.name: column.kind for column in self.columns}
        size = LONG_PIECE if self._long else PIECE
        everything = self._trials.values_list("pk", flat=True).iterator(chunk_size=PIECE)
        while keys := [key for _, key in zip(range(size), everything, strict=False)]:
            budget.check()
            trials = self._described(keys)
            values = self._values(trials["trial"].to_list())
            rows = self._joined(trials, values) if self._long else self._beside(trials, values)
            yield rows.select(pl.col(name).cast(kind) for name, kind in schema.items())

    def _described(self, keys: Sequence[int]) -> pl.DataFrame:
        """Everything of these trials but their measurements, in the order of ``keys``."""
        rows = (
            Trial.objects.filter(pk__in=keys)
            .order_by("pk")
            .annotate(
                kept=KeyTransform("kept", "certificate"),
                link=_Achieved("certificate"),
                queued=_Microseconds("queued_at"),
                running=_Microseconds("running_at"),
                ended=_Microseconds("ended_at"),
            )
            .values_list(
                "experiment__slug", "experiment__name", "experiment__project__slug", "experiment__workload", "cluster__slug",
                "pk", "configuration_id", "configuration__hash", "kind", "repetition", "attempt", "version", "state",
                "superseded", "configuration__in_design", "queued", "running", "ended", "trust", "kept", "link",
                "configuration__hosts", "configuration__ranks",
            )
        )  # fmt: skip
        table: dict[str, list[Any]] = {column.name: [] for column in (*_FIXED, *_ACHIEVED, *_SIZE)}
        trials = reverse("trial", args=[0]).removesuffix("0/")  # a million times would take a while
        for (
            slug, name, project, workload, cluster, pk, configuration, digest, kind, repetition, attempt, version, state,
            superseded, in_design, queued, running, ended, trust, kept, link, hosts, ranks,
        ) in rows:  # fmt: skip
            counts = state == State.FINISHED and kind == Kind.MEASURED and not superseded and in_design
            measured = link or {}
            achieved = [measured.get(quantity) for quantity in QUANTITIES.values()]
            row = (
                slug, name, project, workload, cluster, pk, f"{trials}{pk}/", configuration, digest, kind, repetition, attempt,
                version, state, counts, queued, running, ended, trust or None, kept, *achieved, hosts, ranks,
            )  # fmt: skip
            for values, value in zip(table.values(), row, strict=True):
                values.append(value)
        frame = pl.DataFrame(table, schema={column.name: column.kind for column in (*_FIXED, *_ACHIEVED, *_SIZE)})
        return frame.hstack(self._asked(table["configuration"]))

    def _asked(self, configurations: Sequence[int]) -> list[pl.Series]:
        known = dict(Configuration.objects.filter(pk__in=set(configurations)).values_list("pk", "parameters"))
        series = []
        for column in self._parameters:
            name = column.name.removeprefix("parameter.")
            as_text = column.kind == _TEXT
            cells = {pk: _text(asked.get(name)) if as_text else asked.get(name) for pk, asked in known.items()}
            series.append(pl.Series(column.name, [cells[pk] for pk in configurations], dtype=column.kind, strict=False))
        return series

    def _values(self, keys: Sequence[int]) -> pl.DataFrame:
        """What was measured in these trials: trial, place of the metric (from 1), value."""
        schema = {"trial": _WHOLE, "place": _WHOLE, "value": _NUMBER}
        with connection.cursor() as cursor:
            cursor.execute(_VALUES, [list(keys)])
            trials, names, values = cursor.fetchone()
        if names is None:
            return pl.DataFrame(schema=schema)
        places = {f"{scope} {metric}": place for place, (scope, metric) in enumerate(self._measured, 1)}
        table = {
            "trial": np.frombuffer(trials, ">i8").astype(np.int64),
            "place": [places.get(name) for name in names.split(",")],
            "value": np.frombuffer(values, ">f8").astype(np.float64),
        }
        return pl.DataFrame(table, schema=schema).drop_nulls("place")

    def _joined(self, trials: pl.DataFrame, values: pl.DataFrame) -> pl.DataFrame:
        """A row for each measurement."""
        known = pl.DataFrame(
            [(place, metric, scope, described(metric).unit) for place, (scope, metric) in enumerate(self._measured, 1)],
            schema={"place": _WHOLE, "metric": _TEXT, "scope": _TEXT, "unit": _TEXT},
            orient="row",
        )
        named = values.join(known, on="place").sort("trial", "place")
        return trials.join(named, on="trial", how="inner", maintain_order="right")

    def _beside(self, trials: pl.DataFrame, values: pl.DataFrame) -> pl.DataFrame:
        """The measurements of every trial beside it: a table of trials x metrics, filled by place."""
        table = np.full((len(trials), len(self._measured)), np.nan)
        rows = np.searchsorted(trials["trial"].to_numpy(), values["trial"].to_numpy())
        table[rows, values["place"].to_numpy() - 1] = values["value"].to_numpy()
        names = [_metric_name(scope, metric) for scope, metric in self._measured]
        return trials.hstack(pl.DataFrame(table, schema=dict.fromkeys(names, _NUMBER), nan_to_null=True))


def _measured(trials: QuerySet[Trial]) -> list[tuple[str, str]]:
    """(scope, metric) of what these trials have, in the order in which readers expect metrics.

    Of many trials: what any trial of their workloads may have, as nobody could tell without reading all of them twice.
    """
    own = trials.order_by()
    some = list(own.values_list("pk", flat=True)[: _FEW + 1])
    if len(some) <= _FEW:  # by their keys: a plan without statistics would look all measurements through for each trial
        there = set(Measurement.objects.filter(trial__in=some).values_list("scope", "metric").distinct())
    else:
        workloads = set(own.values_list("experiment__workload", flat=True).distinct())
        with connection.cursor() as cursor:
            cursor.execute(_KNOWN)
            known = cursor.fetchall()
        there = {(scope, name) for scope, name in known if name in METRICS or name.partition(".")[0] in workloads}
    order = in_order({metric for _, metric in there})
    return [(scope, metric) for metric in order for scope in Measurement.Scope.values if (scope, metric) in there]


def _metric_name(scope: str, metric: str) -> str:
    return metric if scope == Measurement.Scope.ALL else metric + _MPI


def _metric(scope: str, metric: str) -> Column:
    told = described(metric)
    label = told.label if scope == Measurement.Scope.ALL else f"{told.label}, MPI traffic"
    return Column(_metric_name(scope, metric), _NUMBER, label, told.unit, told.definition)


_KINDS: Final = """
    SELECT key,
        bool_and(kind IN ('boolean', 'null')),
        bool_and(kind IN ('number', 'null')),
        bool_and(kind = 'null' OR CASE WHEN kind = 'number' THEN (value #>> '{}')::numeric %% 1 = 0
            AND abs((value #>> '{}')::numeric) < 9e15 ELSE false END)
    FROM (
        SELECT key, value, jsonb_typeof(value) AS kind
        FROM experiments_configuration, jsonb_each(parameters) WHERE id = ANY(%s)
    ) AS given
    WHERE key NOT IN ('hosts', 'ranks') GROUP BY key ORDER BY key
"""


def _parameters(trials: QuerySet[Trial]) -> list[Column]:
    """Every parameter of these trials' configurations, numbers as numbers where all of them are."""
    keys = list(trials.order_by().values_list("configuration_id", flat=True).distinct())
    with connection.cursor() as cursor:
        cursor.execute(_KINDS, [keys])
        rows = cursor.fetchall()
    return [
        Column(f"parameter.{name}", _YES if yes else _WHOLE if whole else _NUMBER if number else _TEXT, name)
        for name, yes, number, whole in rows
    ]


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)
