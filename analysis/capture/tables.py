"""Packets of a capture, by either decoder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

from analysis.capture.source import rereadable
from analysis.capture.stream import stream
from analysis.packets import PacketTable

DecoderName = Literal["native", "pyshark"]
Progress = Callable[[int, int], None]
"""Called with (bytes read, bytes of the file)."""


def tables_of(
    path: str | Path,
    decoder: DecoderName = "native",
    *,
    facts: dict[str, Any] | None = None,
    progress: Progress | None = None,
) -> Iterator[PacketTable]:
    """Yield tables of a capture; ``facts`` is filled at the end (PacketTable.source).

    Raises CaptureError.
    """
    facts = {} if facts is None else facts
    if decoder == "pyshark":
        yield from _tables_of_tshark(path, facts)
    else:
        yield from stream(path, facts=facts, progress=progress)


def _tables_of_tshark(path: str | Path, facts: dict[str, Any]) -> Iterator[PacketTable]:
    from analysis.capture.tshark_table import stream_with_tshark  # most captures need none of it

    table: PacketTable | None = None
    packets = 0
    for table in stream_with_tshark(path):
        packets += len(table)
        yield table
    facts.update({"truncated_tail": False, "unread_bytes": 0, "notes": []})
    facts.update(table.source if table is not None else {})
    facts.update({"decoder": "pyshark", "packets": packets})


def read_capture(path: str | Path, *, decoder: DecoderName = "native") -> PacketTable:
    """Read a capture as one table.

    Parameters
    ----------
    path
        Capture file; a pipe or standard input ("-") is copied first.
    decoder
        "native", or "tshark" for more link types.

    Returns
    -------
    PacketTable
        One row per packet, 55 bytes each.

    Raises
    ------
    CaptureError
    """
    facts: dict[str, Any] = {}
    with rereadable(path) as file:
        tables = list(tables_of(file, decoder, facts=facts))
    if not tables:
        return PacketTable.empty(source=facts)
    return PacketTable.joined(tables, source=facts)
