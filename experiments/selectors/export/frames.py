"""Frames as files: CSV, JSON, JSON Lines and Parquet, written as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from io import BytesIO
from typing import Final

import polars as pl
import pyarrow as pa
import pyarrow.parquet

from experiments.selectors.export.columns import Column
from experiments.selectors.export.sink import Sink

_FORMULA: Final = r"^[=+\-@\t\r]"
_GROUP_CELLS: Final = 500_000
"""Of a row group, at least."""

Frames = Iterator[pl.DataFrame]


def as_csv(frames: Frames, columns: Sequence[Column]) -> Iterator[bytes]:
    """Yield CSV (RFC 4180, UTF-8); what is not there is an empty field. A text that a spreadsheet would take for a formula is
    marked as text.
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

    yield from _one_behind(written, frames)


def as_lines(frames: Frames, columns: Sequence[Column]) -> Iterator[bytes]:
    """Yield one JSON object per row and line."""

    def written(frame: pl.DataFrame) -> bytes:
        buffer = BytesIO()
        _stamped(frame).write_ndjson(buffer)
        return buffer.getvalue()

    yield from _one_behind(written, frames)


def as_json(frames: Frames, columns: Sequence[Column]) -> Iterator[bytes]:
    """Yield one JSON array of objects."""
    before = b"["
    for lines in as_lines(frames, columns):
        if lines:
            yield before + lines.rstrip(b"\n").replace(b"\n", b",\n")
            before = b",\n"
    yield b"[]" if before == b"[" else b"]"


def _one_behind(written: Callable[[pl.DataFrame], bytes], frames: Frames) -> Iterator[bytes]:
    """Yield what is written of each frame, by a thread of its own while the next one is read."""
    before: Future[bytes] | None = None
    with ThreadPoolExecutor(1, thread_name_prefix="export") as thread:
        for frame in frames:
            after = thread.submit(written, frame)
            if before is not None:
                yield before.result()
            before = after
        if before is not None:
            yield before.result()


def _stamped(frame: pl.DataFrame) -> pl.DataFrame:
    """Times as ISO 8601 writes them."""
    return frame.with_columns(pl.col(pl.Datetime("us", "UTC")).dt.to_string("iso:strict"))


def as_parquet(frames: Frames, columns: Sequence[Column]) -> Iterator[bytes]:
    """Yield a Parquet file, a piece for each frame; label, unit and definition of a column are its metadata.

    Several frames are one row group: the writer keeps what it has to tell of every group until the end. Numbers seldom repeat, and
    have no dictionary.
    """
    oldest = pl.CompatLevel.oldest()
    plain = pl.DataFrame(schema={column.name: column.kind for column in columns}).to_arrow(compat_level=oldest).schema
    told = [
        field.with_metadata({"label": column.label, "unit": column.unit, "definition": column.definition})
        for field, column in zip(plain, columns, strict=True)
    ]
    sink, waiting = Sink(), list[pa.Table]()
    repeated = [column.name for column in columns if column.kind != pl.Float64()]
    with pyarrow.parquet.ParquetWriter(sink, pa.schema(told), use_dictionary=repeated) as writer:

        def written(frame: pl.DataFrame) -> bytes:
            waiting.append(frame.to_arrow(compat_level=oldest).cast(writer.schema))
            if sum(table.num_rows for table in waiting) * len(columns) >= _GROUP_CELLS:
                writer.write_table(pa.concat_tables(waiting))
                waiting.clear()
            return sink.taken()

        yield from _one_behind(written, frames)
        if waiting:
            writer.write_table(pa.concat_tables(waiting))
    yield from sink.parts()


FORMATS: Final[dict[str, tuple[str, Callable[[Frames, Sequence[Column]], Iterator[bytes]]]]] = {
    "csv": ("text/csv; charset=utf-8", as_csv),
    "json": ("application/json", as_json),
    "jsonl": ("application/jsonl", as_lines),
    "parquet": ("application/vnd.apache.parquet", as_parquet),
}
