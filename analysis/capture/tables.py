"""The packets of a capture, by whichever decoder knows its link type."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

from analysis.capture.stream import stream
from analysis.errors import UnsupportedCapture
from analysis.packets import PacketTable

DecoderName = Literal["auto", "native", "pyshark"]
Progress = Callable[[int, int], None]
"""Called with (bytes read, bytes of the file)."""


def tables_of(
    path: str | Path,
    decoder: DecoderName = "auto",
    *,
    facts: dict[str, Any] | None = None,
    progress: Progress | None = None,
) -> Iterator[PacketTable]:
    """Successive tables of a capture; ``facts`` is filled at the end with what is known of the file.

    "auto" turns to tshark where the native decoder does not know the link type, with a note. Raises CaptureError.
    """
    facts = {} if facts is None else facts
    if decoder == "pyshark":
        yield from _tables_of_tshark(path, facts)
        return
    tables = stream(path, facts=facts, progress=progress)
    try:
        first = next(tables, None)
    except UnsupportedCapture as error:
        if decoder == "native":
            raise
        yield from _tables_of_tshark(path, facts)
        facts["notes"].append(f"decoded with tshark: {error}")
        return
    if first is not None:
        yield from itertools.chain([first], tables)


def _tables_of_tshark(path: str | Path, facts: dict[str, Any]) -> Iterator[PacketTable]:
    from analysis.capture.dissect import (
        stream_with_tshark,  # pyshark takes longer to import than most captures to analyse
    )

    table: PacketTable | None = None
    packets = 0
    for table in stream_with_tshark(path):
        packets += len(table)
        yield table
    facts.update({"truncated_tail": False, "unread_bytes": 0, "notes": []})
    facts.update(table.source if table is not None else {})
    facts.update({"decoder": "pyshark", "packets": packets})


def read_capture(path: str | Path, *, decoder: DecoderName = "auto") -> PacketTable:
    """The whole capture as one table (about 51 bytes per packet). Raises CaptureError."""
    facts: dict[str, Any] = {}
    tables = list(tables_of(path, decoder, facts=facts))
    if not tables:
        return PacketTable.empty(source=facts)
    return PacketTable.joined(tables, source=facts)
