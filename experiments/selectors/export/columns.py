"""Columns of exported files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

CONTENT_TYPES: Final = {
    "csv": "text/csv; charset=utf-8",
    "json": "application/json",
    "jsonl": "application/jsonl",
    "parquet": "application/vnd.apache.parquet",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column with its meaning; ``unit`` is empty if there is none."""

    name: str
    kind: pl.DataType
    label: str = ""
    unit: str = ""
    definition: str = ""


def dimensions(columns: Sequence[Column]) -> Mapping[str, Any]:
    """Return the columns as the W3C's CSV on the Web describes a table (``csvm``)."""
    names = {pl.Int64: "integer", pl.Float64: "double", pl.Boolean: "boolean", pl.Datetime: "dateTime"}
    return {
        "@context": "http://www.w3.org/ns/csvw",
        "tableSchema": {
            "columns": [
                {
                    "name": column.name,
                    "titles": column.label or column.name,
                    "datatype": names.get(type(column.kind), "string"),
                }
                | ({"dc:description": column.definition} if column.definition else {})
                | ({"schema:unitText": column.unit} if column.unit else {})
                for column in columns
            ]
        },
    }


def json_array(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield pieces of JSON Lines as one JSON array of objects."""
    before = b"["
    for lines in pieces:
        if lines:
            yield before + lines.rstrip(b"\n").replace(b"\n", b",\n")
            before = b",\n"
    yield b"[]" if before == b"[" else b"]"
