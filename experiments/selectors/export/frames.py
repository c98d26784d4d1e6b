"""Data frames as CSV, JSON, JSON Lines and Parquet, written piece by piece."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Final

import polars as pl

from experiments.selectors.export.columns import Column, json_array
from experiments.selectors.export.parquet import as_parquet
from experiments.selectors.export.pipeline import one_behind

_FORMULA: Final = r"^[=+\-@\t\r]"

Frames = Iterator[pl.DataFrame]


def as_csv(frames: Frames, columns: Sequence[Column]) -> Iterator[bytes]:
    """Yield CSV (RFC 4180, UTF-8); missing values are empty.

    Text that a spreadsheet would run as a formula is quoted.
    """
    yield pl.DataFrame(schema=[column.name for column in columns]).write_csv(line_terminator="\r\n").encode()
    texts = [column.name for column in columns if column.kind == pl.String()]
    marked = [
        pl.when(pl.col(name).str.contains(_FORMULA)).then("'" + pl.col(name)).otherwise(pl.col(name)).alias(name)
        for name in texts
    ]

    def written(frame: pl.DataFrame) -> bytes:
        buffer = BytesIO()
        _stamped(frame).with_columns(marked).write_csv(buffer, include_header=False, line_terminator="\r\n")
        return buffer.getvalue()

    yield from one_behind(written, frames)


def as_lines(frames: Frames, columns: Sequence[Column]) -> Iterator[bytes]:
    """Yield one JSON object per row and line."""

    def written(frame: pl.DataFrame) -> bytes:
        buffer = BytesIO()
        _stamped(frame).write_ndjson(buffer)
        return buffer.getvalue()

    yield from one_behind(written, frames)


def as_json(frames: Frames, columns: Sequence[Column]) -> Iterator[bytes]:
    """Return the pieces of one JSON array of objects."""
    return json_array(as_lines(frames, columns))


def _stamped(frame: pl.DataFrame) -> pl.DataFrame:
    """Return times as ISO 8601 text."""
    return frame.with_columns(pl.col(pl.Datetime("us", "UTC")).dt.to_string("iso:strict"))


WRITERS: Final = {"csv": as_csv, "json": as_json, "jsonl": as_lines, "parquet": as_parquet}
