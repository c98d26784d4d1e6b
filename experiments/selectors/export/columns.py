"""Columns of exported files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl


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
