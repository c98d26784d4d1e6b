"""What the columns of a file mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a file and what its values mean; ``unit`` is empty for what has none."""

    name: str
    kind: pl.DataType
    label: str = ""
    unit: str = ""
    definition: str = ""


def dimensions(columns: Sequence[Column]) -> Mapping[str, Any]:
    """What the columns mean, as the W3C's CSV on the Web describes a table (``csvm``)."""
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
