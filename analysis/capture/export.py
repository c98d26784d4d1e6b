"""Decoded packets as Parquet or CSV, table by table, so that memory stays bounded."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from analysis.capture.tables import DecoderName, tables_of, with_decoder
from analysis.packets import NO_FLOW, NO_HOST, NO_SCALE, NO_TIME, PacketTable

_ABSENT: Final[dict[str, Any]] = {
    "time_ns": NO_TIME,
    "src": NO_HOST,
    "dst": NO_HOST,
    "flow": NO_FLOW,
    "wscale": NO_SCALE,
}
"""What a column holds where there is nothing; exported as null."""


def arrow_table(table: PacketTable) -> pa.Table:
    """The columns of ``table`` under their own names, addresses as text, absent values as null."""
    columns = {name: _column(table, name) for name in PacketTable.columns()}
    return pa.table(columns)


def _column(table: PacketTable, name: str) -> Any:
    values: npt.NDArray[Any] = getattr(table, name)
    if name not in _ABSENT:
        return pa.array(values)
    absent = values == _ABSENT[name]
    if name not in ("src", "dst"):
        return pa.array(values, mask=absent)
    seen = np.zeros(len(table.hosts), np.bool_)
    seen[values[~absent]] = True
    places = np.cumsum(seen, dtype=np.int32) - 1
    numbers = pa.array(places[np.where(absent, 0, values)] if len(places) else values.astype(np.int32), mask=absent)
    names = table.hosts.named(np.flatnonzero(seen).tolist())
    return pa.DictionaryArray.from_arrays(numbers, pa.array(names, pa.string())).dictionary_decode()


def write_packets(path: str | Path, output: str | Path, *, decoder: DecoderName = "auto") -> int:
    """Write every packet of ``path`` to ``output`` (.parquet or .csv); returns how many.

    Raises ValueError for another suffix and CaptureError for an unreadable capture.
    """
    suffix = Path(output).suffix.lower()
    if suffix not in (".parquet", ".csv"):
        raise ValueError(f"{output}: the name must end in .parquet or .csv")
    return with_decoder(path, decoder, lambda file, chosen, _: _write(tables_of(file, chosen), output, suffix))


def _write(tables: Iterator[PacketTable], output: str | Path, suffix: str) -> int:
    first = next(tables, None) or PacketTable.empty({})  # before the output exists: nothing is left of a bad capture
    writer = pyarrow.parquet.ParquetWriter if suffix == ".parquet" else pyarrow.csv.CSVWriter
    count = 0
    with writer(str(output), arrow_table(first).schema) as file:
        for table in itertools.chain([first], tables):
            file.write_table(arrow_table(table))
            count += len(table)
    return count
