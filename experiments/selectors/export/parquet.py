"""Parquet files of any length, written by a thread while the caller reads rows."""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Full, Queue
from typing import IO, Any, Final, cast

import nanoarrow as na
import polars as pl
from polars.io.plugins import register_io_source

from experiments.selectors.export.columns import Column

_GROUP_CELLS: Final = 500_000
"""Cells per row group: the writer keeps statistics of every group until the end."""
_FRAMES_AHEAD: Final = 2
_POLL_S: Final = 0.5


class Sink(io.RawIOBase):
    """A file in memory: one thread writes, another takes the parts."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: deque[bytes] = deque()
        self._at = 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def write(self, data: Any) -> int:
        part = bytes(data)
        self._parts.append(part)
        self._at += len(part)
        return len(part)

    def parts(self) -> list[bytes]:
        """Return the written parts without copying: the footer of a Parquet file is long."""
        return [self._parts.popleft() for _ in range(len(self._parts))]


def as_parquet(frames: Iterator[pl.DataFrame], columns: Sequence[Column]) -> Iterator[bytes]:
    """Yield a Parquet file with label, unit and definition as column metadata.

    The caller's thread reads ``frames``: a database connection belongs to one thread.
    """
    schema = pl.Schema({column.name: column.kind for column in columns})
    queue: Queue[pl.DataFrame | None] = Queue(_FRAMES_AHEAD)
    sink = Sink()
    with ThreadPoolExecutor(1, thread_name_prefix="export") as thread:
        writing = thread.submit(_write, queue, schema, _described(schema, columns), sink)
        try:
            for frame in frames:
                typed = (pl.col(name).cast(kind) for name, kind in schema.items())
                _put(queue, frame if frame.schema == schema else frame.select(typed), writing)
                yield b"".join(sink.parts())
        finally:
            _put(queue, None, writing)
        writing.result()
    yield from sink.parts()


def _write(queue: Queue[pl.DataFrame | None], schema: pl.Schema, described: na.Schema, sink: Sink) -> None:
    def source(*_: Any) -> Iterator[pl.DataFrame]:
        while (frame := queue.get()) is not None:
            yield frame

    rows = max(1, _GROUP_CELLS // len(schema))
    lazy = register_io_source(source, schema=schema)
    # All readers of Parquet support Snappy.
    lazy.sink_parquet(cast(IO[bytes], sink), compression="snappy", row_group_size=rows, arrow_schema=described)


def _put(queue: Queue[pl.DataFrame | None], frame: pl.DataFrame | None, writing: Future[None]) -> None:
    """Pass a frame to the writer, unless the writer has ended."""
    while not writing.done():
        try:
            return queue.put(frame, timeout=_POLL_S)
        except Full:
            continue
    return None


def _described(schema: pl.Schema, columns: Sequence[Column]) -> na.Schema:
    """Return the Arrow schema with column metadata and portable text types."""
    fields = []
    for field, column in zip(na.Schema(schema).fields, columns, strict=True):
        kind = na.Type.LARGE_STRING if column.kind == pl.String() else field
        metadata = {"label": column.label, "unit": column.unit, "definition": column.definition}
        fields.append(na.Schema(kind, name=column.name, metadata=metadata))
    return na.struct(fields, nullable=False)
