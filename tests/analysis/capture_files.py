"""Writer of capture files of every format, without code of the readers."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Order = Literal["<", ">"]


@dataclass(frozen=True)
class Frame:
    """One frame: stamp in ns (None: without), captured bytes, length on the wire."""

    time_ns: int | None
    data: bytes
    orig_len: int

    @classmethod
    def whole(cls, time_ns: int, data: bytes, snap_length: int = 262_144) -> Frame:
        return cls(time_ns, data[:snap_length], len(data))


def pcap(
    frames: Sequence[Frame], *, order: Order = "<", nanoseconds: bool = True, link: int = 1, snap_length: int = 262_144
) -> bytes:
    """A classic savefile; microseconds truncate the stamps."""
    magic = 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
    parts = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snap_length, link)]
    for frame in frames:
        seconds, rest = divmod(frame.time_ns or 0, 10**9)
        fraction = rest if nanoseconds else rest // 1000
        parts += [struct.pack(order + "IIII", seconds, fraction, len(frame.data), frame.orig_len), frame.data]
    return b"".join(parts)


def block(kind: int, body: bytes, order: Order) -> bytes:
    body += b"\0" * (-len(body) % 4)
    length = len(body) + 12
    return struct.pack(order + "II", kind, length) + body + struct.pack(order + "I", length)


def option(code: int, value: bytes, order: Order) -> bytes:
    return struct.pack(order + "HH", code, len(value)) + value + b"\0" * (-len(value) % 4)


def section(order: Order = "<") -> bytes:
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(
    order: Order = "<", *, link: int = 1, snap_length: int = 0, tsresol: int | None = 9, tsoffset_s: int | None = None
) -> bytes:
    options = b"" if tsresol is None else option(9, bytes([tsresol]), order)
    if tsoffset_s is not None:
        options += option(14, struct.pack(order + "q", tsoffset_s), order)
    if options:
        options += option(0, b"", order)
    return block(1, struct.pack(order + "HHI", link, 0, snap_length) + options, order)


def enhanced(
    frame: Frame, order: Order = "<", *, number: int = 0, ticks: int | None = None, options: bytes = b""
) -> bytes:
    """``ticks`` in the interface's resolution; nanoseconds when it is not given."""
    ticks = (frame.time_ns or 0) if ticks is None else ticks
    head = struct.pack(order + "IIIII", number, ticks >> 32, ticks & 0xFFFFFFFF, len(frame.data), frame.orig_len)
    return block(6, head + frame.data + (b"\0" * (-len(frame.data) % 4) + options if options else b""), order)


def obsolete(frame: Frame, order: Order = "<", *, number: int = 0) -> bytes:
    ticks = frame.time_ns or 0
    head = struct.pack(order + "HHIIII", number, 0, ticks >> 32, ticks & 0xFFFFFFFF, len(frame.data), frame.orig_len)
    return block(2, head + frame.data, order)


def simple(frame: Frame, order: Order = "<") -> bytes:
    return block(3, struct.pack(order + "I", frame.orig_len) + frame.data, order)


def statistics(order: Order = "<", *, number: int = 0, received: int, dropped: int) -> bytes:
    options = option(4, struct.pack(order + "Q", received), order) + option(7, struct.pack(order + "Q", dropped), order)
    return block(5, struct.pack(order + "III", number, 0, 0) + options + option(0, b"", order), order)


def pcapng(frames: Sequence[Frame], *, order: Order = "<", link: int = 1) -> bytes:
    """One section, one interface in nanoseconds."""
    return section(order) + interface(order, link=link) + b"".join(enhanced(frame, order) for frame in frames)
