"""Exported columns of trials besides their measurements."""

from __future__ import annotations

import json
from collections.abc import Sequence, Set
from typing import Any, Final

import polars as pl
from django.db import connection
from django.urls import reverse

from analysis.scaling import DISTURBED
from experiments.common.sent_arrays import keys_text
from experiments.models import Configuration, Experiment, Trial
from experiments.models.states import Kind, State, excluded_as_disturbed
from experiments.selectors.certificates import QUANTITIES
from experiments.selectors.export.arrays import ExportedTrials, Keys
from experiments.selectors.export.columns import Column

_TEXT, _WHOLE, _NUMBER, _YES = pl.String(), pl.Int64(), pl.Float64(), pl.Boolean()
_SCHEMA: Final = {
    "trial": _WHOLE,
    "experiment_id": _WHOLE,
    "configuration": _WHOLE,
    "cluster": _TEXT,
    "kind": _TEXT,
    "repetition": _WHOLE,
    "attempt": _WHOLE,
    "version": _WHOLE,
    "state": _TEXT,
    "superseded": _WHOLE,
    "queued_at": _WHOLE,
    "running_at": _WHOLE,
    "ended_at": _WHOLE,
    "trust": _TEXT,
    "link_kept": _WHOLE,
    **{f"achieved.{name}": _NUMBER for name in QUANTITIES},
}
_TIMES: Final = ("queued_at", "running_at", "ended_at")
_ACHIEVED: Final = ", ".join(
    f"coalesce((avg((direction ->> 'achieved')::float8) FILTER (WHERE direction ->> 'quantity' = '{quantity}'))::text, '')"
    for quantity in QUANTITIES.values()
)
_COLUMNS: Final = (
    *("t.id", "t.experiment_id", "t.configuration_id", "c.slug", "t.kind", "t.repetition", "t.attempt", "t.version"),
    *("t.state", "t.superseded::int"),
    # Microseconds fit into a float8, which is twice as fast as the numeric of extract().
    *(f"(date_part('epoch', t.{name}) * 1000000)::bigint" for name in _TIMES),
    "nullif(t.trust, '')",
    "CASE t.certificate -> 'kept' WHEN 'true' THEN 1 WHEN 'false' THEN 0 END",
)
_LINE: Final = ", ".join(f"coalesce(({column})::text, '')" for column in _COLUMNS)
_FACTS: Final = f"""
    SELECT string_agg(concat_ws(',', {_LINE}, CASE WHEN t.certificate IS NULL THEN '{"," * (len(QUANTITIES) - 1)}' ELSE (
        SELECT concat_ws(',', {_ACHIEVED}) FROM jsonb_array_elements(t.certificate -> 'rows') AS direction
        WHERE jsonb_typeof(direction -> 'achieved') = 'number'
    ) END), E'\\n')
    FROM experiments_trial t
    LEFT JOIN experiments_cluster c ON c.id = t.cluster_id
    WHERE t.id = ANY(%s::bigint[])
"""  # noqa: S608 - names of our own
"""All rows as one CSV text, which polars parses: rows of the ORM halve the speed of an export. No text that users write is in it, and
none has a comma or a quotation mark. The achieved link is the mean over its directions."""
_SIZE: Final = {"hosts", "ranks"}
_LARGEST: Final = 9e15
"""Whole numbers below it are exact as floats."""
_KINDS: Final = """
    SELECT name, array_agg(kind) FROM (
        SELECT DISTINCT key AS name, CASE jsonb_typeof(value)
            WHEN 'number' THEN CASE
                WHEN value::numeric %% 1 = 0 AND abs(value::numeric) < %s THEN 'whole' ELSE 'number' END
            WHEN 'boolean' THEN 'yes' WHEN 'null' THEN 'nothing' ELSE 'text' END AS kind
        FROM experiments_configuration, jsonb_each(parameters) WHERE id = ANY(%s::bigint[])
    ) AS typed GROUP BY name
"""
"""In Python, reading all parameters took a third of an export."""
_EXCLUDED: Final = "SELECT id FROM ({}) AS excluded (id) WHERE id = ANY(%s::bigint[])"
_CONFIGURATION: Final = ("pk", "hash", "in_design", "hosts", "ranks", "parameters")


class Facts:
    """The facts of trials; ``parameters`` are those of any of their configurations.

    Links begin with ``address``.
    """

    def __init__(self, chosen: ExportedTrials, address: str) -> None:
        self.parameters = _parameters(chosen.configurations)
        self._experiments: dict[int, tuple[str, ...]] = {}
        self._page = address + reverse("trial", args=[0]).removesuffix("0/")

    def of(self, trials: Keys) -> pl.DataFrame:
        """Return the columns of these trials, by key."""
        with connection.cursor() as cursor:
            cursor.execute(_FACTS, [keys_text(trials.tolist())])
            (text,) = cursor.fetchone()
        rows = pl.read_csv(text.encode(), has_header=False, schema=_SCHEMA) if text else pl.DataFrame(schema=_SCHEMA)
        rows = rows.sort("trial")  # faster than PostgreSQL
        rows = rows.join(
            _configurations(rows["configuration"], self.parameters), on="configuration", maintain_order="left"
        )
        rows = rows.join(self._of_experiments(rows["experiment_id"]), on="experiment_id", maintain_order="left")
        rows = rows.with_columns(_excluded(rows["trial"]).alias("excluded"))
        return rows.with_columns(
            pl.format(f"{self._page}{{}}/", "trial").alias("url"),
            pl.col("excluded").is_null().alias("counts"),
            pl.col("link_kept").cast(_YES),
            *(pl.col(name).cast(pl.Datetime("us", "UTC")) for name in _TIMES),
        )

    def _of_experiments(self, keys: pl.Series) -> pl.DataFrame:
        distinct = keys.unique().to_list()
        if new := [key for key in distinct if key not in self._experiments]:
            columns = ("pk", "slug", "name", "project__slug", "workload")
            self._experiments |= {
                pk: texts for pk, *texts in Experiment.objects.filter(pk__in=new).values_list(*columns)
            }
        schema = {"experiment_id": _WHOLE, "experiment": _TEXT, "name": _TEXT, "project": _TEXT, "workload": _TEXT}
        rows = [(key, *self._experiments[key]) for key in distinct if key in self._experiments]
        return pl.DataFrame(rows, schema=schema, orient="row")


def _excluded(trials: pl.Series) -> pl.Expr:
    """Return the reason why statistics exclude a trial, null if they use it."""
    slowed = Trial.objects.filter(excluded_as_disturbed()).order_by().values("pk")
    sql, parameters = slowed.query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(_EXCLUDED.format(sql), [*parameters, keys_text(trials)])
        keys = [key for (key,) in cursor.fetchall()]
    return (
        pl.when(pl.col("state") != State.FINISHED)
        .then(pl.col("state"))
        .when(pl.col("kind") != Kind.MEASURED)
        .then(pl.col("kind"))
        .when(pl.col("superseded") == 1)
        .then(pl.lit("replaced"))
        .when(~pl.col("in_design"))
        .then(pl.lit("not in the design"))
        .when(pl.col("trial").is_in(keys))
        .then(pl.lit(DISTURBED))
    )


def _configurations(keys: pl.Series, parameters: Sequence[Column]) -> pl.DataFrame:
    rows = Configuration.objects.filter(pk__in=keys.unique().to_list()).values_list(*_CONFIGURATION)
    pk, digest, in_design, hosts, ranks, stored = zip(*rows, strict=True) if rows else ((),) * 6
    columns = [
        pl.Series("configuration", pk, dtype=_WHOLE),
        pl.Series("hash", digest, dtype=_TEXT),
        pl.Series("in_design", in_design, dtype=_YES),
        pl.Series("parameter.hosts", hosts, dtype=_WHOLE),
        pl.Series("parameter.ranks", ranks, dtype=_WHOLE),
    ]
    return pl.DataFrame([*columns, *(_cells(column, stored) for column in parameters)])


def _cells(column: Column, rows: Sequence[dict[str, Any]]) -> pl.Series:
    name = column.name.removeprefix("parameter.")
    cells = [parameters.get(name) for parameters in rows]
    return pl.Series(column.name, map(_text, cells) if column.kind == _TEXT else cells, dtype=column.kind, strict=False)


def _parameters(configurations: Sequence[int]) -> list[Column]:
    """Return a column per parameter, typed if all values agree."""
    with connection.cursor() as cursor:
        cursor.execute(_KINDS, [_LARGEST, keys_text(configurations)])
        kinds = {name: set(of_name) for name, of_name in cursor.fetchall()}
    return [Column(f"parameter.{name}", _column_kind(kinds[name]), name) for name in sorted(kinds.keys() - _SIZE)]


def _column_kind(kinds: Set[str]) -> pl.DataType:
    for kind, of in ((_YES, {"yes"}), (_WHOLE, {"whole"}), (_NUMBER, {"whole", "number"})):
        if kinds <= of | {"nothing"}:
            return kind
    return _TEXT


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)
