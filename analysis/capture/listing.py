"""One line per packet: the columns of tshark's own list."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from analysis.capture.tshark import running, selection

# Source and destination are not adjacent: tshark would print an arrow as a column between them.
_COLUMNS: Final = {
    "No.": "%m",
    "Time": "%t",
    "Source": "%s",
    "Protocol": "%p",
    "Destination": "%d",
    "Length": "%L",
    "TCP connection": "%Cus:tcp.stream:1:R",
    "UDP connection": "%Cus:udp.stream:1:R",
    "TCP payload": "%Cus:tcp.len:1:R",
    "TCP flags": "%Cus:tcp.flags:1:R",
    "TCP analysis": "%Cus:tcp.analysis.flags:1:R",
    "Info": "%i",
}
_SECTION: Final = re.compile(r"<section>(.*?)</section>", re.DOTALL)
_NOT_PRINTABLE: Final = re.compile(r"[\0-\x1f\x7f-\x9f]")
_OPENS_OR_ENDS: Final = 0x007
"""FIN, SYN and RST of the TCP flags."""
_HARMLESS: Final = ("[TCP Window Update]", "[TCP Keep-Alive")
"""Remarks of tshark's TCP analysis that are no sign of loss or of a full window."""
_FORMAT: Final = ",".join(f'"{title}","{content}"' for title, content in _COLUMNS.items())


@dataclass(frozen=True, slots=True)
class PacketLine:
    """One packet of the list; ``time_s`` from the first one, None if not recorded.

    ``kind``: problem (retransmitted, out of order, full window ...), handshake (opens or ends a connection), data, ack (no payload),
    datagram (UDP) or other. ``connection``: the display filter of its connection, '' without one.
    """

    number: int
    time_s: float | None
    source: str
    destination: str
    protocol: str
    length: int
    kind: str
    connection: str
    info: str

    @property
    def connection_number(self) -> str:
        return self.connection.rpartition(" ")[2]


def list_packets(
    capture: str | Path,
    *,
    frames: tuple[int, int] | None = None,
    seconds: tuple[float, float] | None = None,
    display_filter: str | None = None,
    limit: int = 50,
    timeout_s: float = 20.0,
) -> list[PacketLine]:
    """Return the first ``limit`` packets that pass ``display_filter``.

    Frames (first, last) are numbered from 1, seconds (first, last) count from the first packet, both inclusive. Raises the errors of
    ``dissect``.
    """
    # Not its plain text: packets could forge lines in it.
    arguments = ["-T", "psml", "-t", "r", "-o", f"gui.column.format:{_FORMAT}"]
    arguments += selection(frames, seconds, display_filter, limit)
    lines: list[PacketLine] = []
    with running(capture, arguments, timeout_s) as run:
        for document in run.packets():
            lines.append(_packet_line(document.decode(errors="replace")))
            if len(lines) == limit:
                run.enough = True
                break
    return lines


def _packet_line(document: str) -> PacketLine:
    number, time_s, source, protocol, destination, length, tcp, udp, payload, flags, remark, info = (
        _NOT_PRINTABLE.sub("\ufffd", html.unescape(column).strip()) for column in _SECTION.findall(document)
    )
    return PacketLine(
        int(number),
        float(time_s) if time_s else None,
        source,
        destination,
        protocol,
        int(length),
        _kind(flags, payload, is_problem=bool(remark) and not info.startswith(_HARMLESS), is_udp=bool(udp)),
        f"tcp.stream == {tcp}" if tcp else f"udp.stream == {udp}" if udp else "",
        info,
    )


def _kind(flags: str, payload: str, *, is_problem: bool, is_udp: bool) -> str:
    if is_problem:
        return "problem"
    if not flags:
        return "datagram" if is_udp else "other"
    if int(flags, 16) & _OPENS_OR_ENDS:
        return "handshake"
    return "data" if payload not in ("", "0") else "ack"
