"""Decoded packets as Parquet or CSV, table by table, so that memory stays bounded."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl
from polars.io.plugins import register_io_source

from analysis.capture.source import rereadable
from analysis.capture.tables import DecoderName, tables_of
from analysis.errors import CaptureError
from analysis.packets import NO_FLOW, NO_HOST, NO_SCALE, NO_TIME, PacketTable

_ABSENT: Final[dict[str, Any]] = {
    "time_ns": NO_TIME,
    "src": NO_HOST,
    "dst": NO_HOST,
    "flow": NO_FLOW,
    "wscale": NO_SCALE,
}
"""The value for absence, by column; exported as null."""


def frame(table: PacketTable) -> pl.DataFrame:
    """Return the columns of ``table``, addresses as text, absent values as null."""
    return pl.DataFrame([_column(table, name) for name in PacketTable.columns()])


def _column(table: PacketTable, name: str) -> pl.Series:
    values: npt.NDArray[Any] = getattr(table, name)
    if name not in _ABSENT:
        return pl.Series(name, values)
    is_absent = values == _ABSENT[name]
    if name not in ("src", "dst"):
        return pl.Series(name, values).set(pl.Series(is_absent), None)
    # Only hosts that occur become text: a million addresses would take a second.
    numbers = np.unique(values[~is_absent])
    names = pl.Series(name, [*table.hosts.named(numbers.tolist()), None], dtype=pl.String())
    places = np.where(is_absent, len(numbers), np.searchsorted(numbers, values))
    return names.gather(places)


def write_packets(path: str | Path, output: str | Path, *, decoder: DecoderName = "native") -> int:
    """Write all packets to ``output`` (.parquet or .csv); return their number.

    Raises ValueError for another suffix and CaptureError for an unreadable capture.
    """
    suffix = Path(output).suffix.lower()
    if suffix not in (".parquet", ".csv"):
        raise ValueError(f"{output}: the name must end in .parquet or .csv")
    with rereadable(path) as file:
        return _write(tables_of(file, decoder), output, suffix)


def _write(tables: Iterator[PacketTable], output: str | Path, suffix: str) -> int:
    first = next(tables, None) or PacketTable.empty({})  # before the output is created: a bad capture leaves no file
    count = 0
    failures: list[CaptureError] = []

    def frames(*_: Any) -> Iterator[pl.DataFrame]:
        nonlocal count
        try:
            for table in itertools.chain([first], tables):
                count += len(table)
                yield frame(table)
        except CaptureError as error:  # polars would raise an error of its own instead
            failures.append(error)

    rows = register_io_source(frames, schema=frame(first).schema)
    if suffix == ".parquet":
        rows.sink_parquet(output)
    else:
        rows.sink_csv(output)
    if failures:
        raise failures[0]
    return count
