"""The explorer's table as CSV, JSON, JSON Lines or Parquet, in bounded memory."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

import polars as pl

from experiments.metrics import described
from experiments.models import Configuration
from experiments.selectors.certificates import QUANTITIES, CertificateStatus, certificate_statuses
from experiments.selectors.explorer import TableRow, table_rows
from experiments.selectors.export.columns import Column, json_array
from experiments.selectors.export.parquet import as_parquet as written_as_parquet

_PIECE: Final = 500
_FIXED: Final = ("experiment", "name", "workload", "cluster", "project", "configuration", "hash", "url")
_TRUSTED: Final = ("trust", "link_kept", *(f"achieved.{name}" for name in QUANTITIES))
"""Trust and certified link: every exported row has them."""
_UNMEASURED: Final = CertificateStatus("", None, {})
_STATISTICS: Final = ("n", "median", "minimum", "maximum")

Row = dict[str, Any]


def columns(parameters: Sequence[str], metrics: Sequence[str]) -> list[str]:
    """Return the header: identity, parameters, trust, four numbers per metric."""
    measured = [f"{metric}.{statistic}" for metric in metrics for statistic in _STATISTICS]
    return [*_FIXED, *(f"parameter.{name}" for name in parameters), *_TRUSTED, *measured]


def described_columns(parameters: Sequence[str], metrics: Sequence[str]) -> list[Column]:
    """Return the columns with their meaning."""
    described_names = []
    for name in columns(parameters, metrics):
        metric, _, statistic = name.rpartition(".")
        if metric in metrics and statistic in _STATISTICS:
            of = described(metric)
            unit = "" if statistic == "n" else of.unit
            described_names.append(Column(name, _kind(name), f"{of.label}, {statistic}", unit, of.definition))
        else:
            described_names.append(Column(name, _kind(name)))
    return described_names


def rows(
    matching: Any, parameters: Sequence[str], metrics: Sequence[str], scope: str, address: str
) -> Iterator[list[Row]]:
    """Yield the table in pieces; ``matching`` is an ordered query of configurations.

    Links begin with ``address``.
    """
    everything = iter(matching.iterator(chunk_size=_PIECE))
    while piece := list(islice(everything, _PIECE)):
        standing_of = certificate_statuses([configuration.pk for configuration in piece])
        yield [
            _row(row, parameters, metrics, standing_of.get(row.configuration.pk, _UNMEASURED), address)
            for row in table_rows(piece, metrics, scope)
        ]


def _row(
    measured: TableRow, parameters: Sequence[str], metrics: Sequence[str], status: CertificateStatus, address: str
) -> Row:
    configuration: Configuration = measured.configuration
    experiment = configuration.experiment
    row: Row = {
        "experiment": experiment.slug,
        "name": experiment.name,
        "workload": experiment.workload,
        "cluster": experiment.cluster.slug if experiment.cluster else None,
        "project": experiment.project.slug,
        "configuration": configuration.pk,
        "hash": configuration.hash,
        "url": address + experiment.get_absolute_url(),
    }
    named = {"hosts": configuration.hosts, "ranks": configuration.ranks, **configuration.parameters}
    row |= {f"parameter.{name}": named.get(name) for name in parameters}
    row |= {"trust": status.trust or None, "link_kept": status.link_kept}
    row |= {f"achieved.{name}": status.achieved.get(name) for name in QUANTITIES}
    for metric in metrics:
        values = measured.values.get(metric, (None,) * len(_STATISTICS))
        row |= {f"{metric}.{statistic}": value for statistic, value in zip(_STATISTICS, values, strict=True)}
    return row


def as_csv(pieces: Iterator[list[Row]], header: Sequence[str]) -> Iterator[bytes]:
    """Yield CSV (RFC 4180, UTF-8); missing values are empty."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, header)
    writer.writeheader()
    for piece in pieces:
        writer.writerows({name: _plain(value) for name, value in row.items()} for row in piece)
        yield buffer.getvalue().encode()
        buffer.seek(0)
        buffer.truncate()
    yield buffer.getvalue().encode()


def _plain(value: Any) -> Any:
    """Return a text cell; text that a spreadsheet would run as a formula is quoted."""
    if isinstance(value, list | dict):
        return json.dumps(value)
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value


def as_lines(pieces: Iterator[list[Row]], header: Sequence[str]) -> Iterator[bytes]:
    """Yield one JSON object per row and line."""
    for piece in pieces:
        yield "".join(f"{json.dumps(row)}\n" for row in piece).encode()


def as_json(pieces: Iterator[list[Row]], header: Sequence[str]) -> Iterator[bytes]:
    """Return the pieces of one JSON array of objects."""
    return json_array(as_lines(pieces, header))


def as_parquet(pieces: Iterator[list[Row]], header: Sequence[str]) -> Iterator[bytes]:
    """Yield a Parquet file. Parameters are text: their types differ between workloads."""
    schema = {name: _kind(name) for name in header}
    frames = (pl.DataFrame([_typed(row) for row in piece], schema=schema) for piece in pieces)
    return written_as_parquet(frames, [Column(name, kind) for name, kind in schema.items()])


def _kind(name: str) -> pl.DataType:
    if name == "link_kept":
        return pl.Boolean()
    if name == "configuration" or name.startswith("parameter.") or name.endswith(".n"):
        return pl.String() if _is_text(name) else pl.Int64()
    return pl.String() if name in ("trust", *_FIXED) else pl.Float64()


def _typed(row: Row) -> Row:
    return {
        name: value if value is None or isinstance(value, str) or not _is_text(name) else json.dumps(value)
        for name, value in row.items()
    }


def _is_text(name: str) -> bool:
    return name.startswith("parameter.") and name not in ("parameter.hosts", "parameter.ranks")


WRITERS: Final = {"csv": as_csv, "json": as_json, "jsonl": as_lines, "parquet": as_parquet}
