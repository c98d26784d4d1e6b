"""The packets of a capture, by whichever decoder knows its link types."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from analysis.capture.source import rereadable
from analysis.capture.stream import stream
from analysis.errors import UnsupportedCapture
from analysis.numbers import grouped
from analysis.packets import PacketTable

Result = TypeVar("Result")
OneDecoder = Literal["native", "pyshark", "counting"]
"""``counting`` is the native one for captures that only tshark could take apart: what it does not know is counted."""
DecoderName = Literal["auto", "native", "pyshark"]
MOST_FOR_TSHARK: Final = 200_000
"""Packets that tshark is given unasked: eight seconds at 40 us each."""
Progress = Callable[[int, int], None]
"""Called with (bytes read, bytes of the file)."""
_FOR_TSHARK: Final = (
    f"tshark does, but takes about 40 us for each packet, and there are more than {grouped(MOST_FOR_TSHARK)}: "
    "ask for the decoder pyshark (--decoder pyshark) to have them taken apart"
)
Work = Callable[[str | Path, OneDecoder, tuple[str, ...]], Result]


def with_decoder(path: str | Path, decoder: DecoderName, work: Work[Result]) -> Result:
    """``work(path, decoder, notes)``; "auto" does it again with tshark where a link type is unknown, however late it comes.

    Of more than MOST_FOR_TSHARK packets those that only tshark knows are counted instead, which is told.
    ``path`` may be a pipe or "-": work gets a file that can be read more than once. Raises CaptureError.
    """
    with rereadable(path) as file:
        if decoder != "auto":
            return work(file, decoder, ())
        try:
            return work(file, "native", ())
        except UnsupportedCapture as error:
            if not _are_many(file):
                return work(file, "pyshark", (f"decoded with tshark: {error}",))
            return work(file, "counting", (f"{error}; {_FOR_TSHARK}",))


def _are_many(path: str | Path) -> bool:
    packets = 0
    for table in stream(path, count=True):
        packets += len(table)
        if packets > MOST_FOR_TSHARK:
            return True
    return False


def tables_of(
    path: str | Path,
    decoder: OneDecoder = "native",
    *,
    facts: dict[str, Any] | None = None,
    progress: Progress | None = None,
    notes: tuple[str, ...] = (),
) -> Iterator[PacketTable]:
    """Successive tables of a capture; ``facts`` is filled at the end with what is known of the file, ``notes`` added to its own.

    Raises CaptureError.
    """
    facts = {} if facts is None else facts
    if decoder == "pyshark":
        yield from _tables_of_tshark(path, facts)
    else:
        yield from stream(path, count=decoder == "counting", facts=facts, progress=progress)
    facts["notes"] += notes


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


def read_capture(path: str | Path, *, decoder: DecoderName = "auto") -> PacketTable:
    """The whole capture as one table (about 55 bytes per packet). Raises CaptureError."""
    return with_decoder(path, decoder, _joined)


def _joined(path: str | Path, decoder: OneDecoder, notes: tuple[str, ...]) -> PacketTable:
    facts: dict[str, Any] = {}
    tables = list(tables_of(path, decoder, facts=facts, notes=notes))
    if not tables:
        return PacketTable.empty(source=facts)
    return PacketTable.joined(tables, source=facts)
