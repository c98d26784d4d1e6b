"""What trials say beside their measurements, as columns: PostgreSQL copies out what differs from trial to trial."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

import polars as pl
from django.db import connection
from django.urls import reverse

from experiments.models import Experiment
from experiments.models.states import Kind, State
from experiments.selectors.certificates import QUANTITIES
from experiments.selectors.export.chosen import Chosen, Keys
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
_MOMENTS: Final = ("queued_at", "running_at", "ended_at")
_ACHIEVED: Final = ", ".join(
    f"avg((one ->> 'achieved')::float8) FILTER (WHERE one ->> 'quantity' = '{quantity}')"
    for quantity in QUANTITIES.values()
)
_LINK_NAMES: Final = ", ".join(f"achieved_{place}" for place in range(len(QUANTITIES)))
_COLUMNS: Final = (
    "t.id",
    "t.experiment_id",
    "t.configuration_id",
    "c.slug",
    "t.kind",
    "t.repetition",
    "t.attempt",
    "t.version",
    "t.state",
    "t.superseded::int",
    *(f"(extract(epoch FROM t.{name}) * 1000000)::bigint" for name in _MOMENTS),
    "nullif(t.trust, '')",
    "CASE t.certificate -> 'kept' WHEN 'true' THEN 1 WHEN 'false' THEN 0 END",
    *(f"link.achieved_{place}" for place in range(len(QUANTITIES))),
)
_LINE: Final = ", ".join(f"coalesce(({column})::text, '')" for column in _COLUMNS)
_FACTS: Final = f"""
    SELECT string_agg(concat_ws(',', {_LINE}), E'\\n' ORDER BY t.id)
    FROM experiments_trial t
    LEFT JOIN experiments_cluster c ON c.id = t.cluster_id
    LEFT JOIN LATERAL (
        SELECT {_ACHIEVED} FROM jsonb_array_elements(t.certificate -> 'rows') AS one
        WHERE jsonb_typeof(one -> 'achieved') = 'number'
    ) AS link ({_LINK_NAMES}) ON t.certificate IS NOT NULL
    WHERE t.id = ANY(%s)
"""  # noqa: S608 - names of our own
"""One text of all rows as CSV: psycopg hands each row of a COPY to Python, which costs more than reading it here. No text that people
write is among them, and none with a comma or a quotation mark. What a link achieved is the mean over its directions."""
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

_CONFIGURATIONS: Final = """
    SELECT json_agg(json_build_array(id, hash, in_design, hosts, ranks, parameters))::text
    FROM experiments_configuration WHERE id = ANY(%s)
"""


class Facts:
    """Everything that a set of trials says but its measurements; ``parameters`` are those that any of their configurations has."""

    def __init__(self, chosen: Chosen) -> None:
        self.parameters = _parameters(chosen.configurations)
        self._experiments: dict[int, tuple[str, ...]] = {}
        self._page = reverse("trial", args=[0]).removesuffix("0/")

    def of(self, trials: Keys) -> pl.DataFrame:
        """Return the columns of these trials, in the order of their numbers."""
        with connection.cursor() as cursor:
            cursor.execute(_FACTS, [trials.tolist()])
            (text,) = cursor.fetchone()
        rows = pl.read_csv(text.encode(), has_header=False, schema=_SCHEMA) if text else pl.DataFrame(schema=_SCHEMA)
        rows = rows.join(
            _configurations(rows["configuration"], self.parameters), on="configuration", maintain_order="left"
        )
        rows = rows.join(self._of_experiments(rows["experiment_id"]), on="experiment_id", maintain_order="left")
        counts = pl.col("state").eq(State.FINISHED) & pl.col("kind").eq(Kind.MEASURED) & pl.col("superseded").eq(0)
        return rows.with_columns(
            pl.format(f"{self._page}{{}}/", "trial").alias("url"),
            (counts & pl.col("in_design")).alias("counts"),
            pl.col("link_kept").cast(_YES),
            *(pl.col(name).cast(pl.Datetime("us", "UTC")) for name in _MOMENTS),
        )

    def _of_experiments(self, keys: pl.Series) -> pl.DataFrame:
        wanted = keys.unique().to_list()
        if new := [key for key in wanted if key not in self._experiments]:
            columns = ("pk", "slug", "name", "project__slug", "workload")
            self._experiments |= {pk: told for pk, *told in Experiment.objects.filter(pk__in=new).values_list(*columns)}
        schema = {"experiment_id": _WHOLE, "experiment": _TEXT, "name": _TEXT, "project": _TEXT, "workload": _TEXT}
        rows = [(key, *self._experiments[key]) for key in wanted if key in self._experiments]
        return pl.DataFrame(rows, schema=schema, orient="row")


def _configurations(keys: pl.Series, parameters: Sequence[Column]) -> pl.DataFrame:
    with connection.cursor() as cursor:
        cursor.execute(_CONFIGURATIONS, [keys.unique().to_list()])
        rows = json.loads(cursor.fetchone()[0] or "[]")
    pk, digest, in_design, hosts, ranks, asked = zip(*rows, strict=True) if rows else ((),) * 6
    columns = [
        pl.Series("configuration", pk, dtype=_WHOLE),
        pl.Series("hash", digest, dtype=_TEXT),
        pl.Series("in_design", in_design, dtype=_YES),
        pl.Series("parameter.hosts", hosts, dtype=_WHOLE),
        pl.Series("parameter.ranks", ranks, dtype=_WHOLE),
    ]
    return pl.DataFrame([*columns, *(_cells(column, asked) for column in parameters)])


def _cells(column: Column, asked: Sequence[dict[str, Any]]) -> pl.Series:
    name = column.name.removeprefix("parameter.")
    cells = [given.get(name) for given in asked]
    return pl.Series(column.name, map(_text, cells) if column.kind == _TEXT else cells, dtype=column.kind, strict=False)


def _parameters(configurations: Sequence[int]) -> list[Column]:
    """Every parameter of these configurations, numbers as numbers where all of them are."""
    with connection.cursor() as cursor:
        cursor.execute(_KINDS, [list(configurations)])
        rows = cursor.fetchall()
    return [
        Column(f"parameter.{name}", _YES if yes else _WHOLE if whole else _NUMBER if number else _TEXT, name)
        for name, yes, number, whole in rows
    ]


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)
