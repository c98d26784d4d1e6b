"""Decoded packets as Parquet or CSV, table by table, so that memory stays bounded."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from analysis.capture_analysis import DecoderName, tables_of
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
    numbers = pa.array(np.where(absent, 0, values).astype(np.int32), mask=absent)
    return pa.DictionaryArray.from_arrays(numbers, pa.array(table.hosts, pa.string())).dictionary_decode()


def write_packets(path: str | Path, output: str | Path, *, decoder: DecoderName = "auto") -> int:
    """Write every packet of ``path`` to ``output`` (.parquet or .csv); returns how many.

    Raises ValueError for another suffix and CaptureError for an unreadable capture.
    """
    suffix = Path(output).suffix.lower()
    if suffix not in (".parquet", ".csv"):
        raise ValueError(f"{output}: the name must end in .parquet or .csv")
    count = 0
    writer: Any = None
    try:
        for table in tables_of(path, decoder):
            rows = arrow_table(table)
            if writer is None:
                kind = pyarrow.parquet.ParquetWriter if suffix == ".parquet" else pyarrow.csv.CSVWriter
                writer = kind(str(output), rows.schema)
            writer.write_table(rows)
            count += len(table)
    finally:
        if writer is not None:
            writer.close()
    return count
