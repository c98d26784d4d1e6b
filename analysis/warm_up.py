"""Compile every kernel before somebody waits for it: ``python -m analysis.warm_up``, part of setting up.

A first analysis compiles for a quarter of a minute; later processes load the machine code (``analysis.kernels``),
the command line without numba (``analysis.kernels.ready``).
"""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path

from analysis import kernels
from analysis.capture.decoder import Decoder
from analysis.capture.join import join
from analysis.capture.share import Recording
from analysis.capture.tables import tables_of
from analysis.capture_analysis import analyse
from analysis.traffic.tcp import TcpAccumulator

_HANDSHAKE = struct.pack("<II", 1, 0) + b"OPAL-TCP-BTL".ljust(16, b"\0")
_SYN_OPTIONS = b"\x02\x04\x05\xb4\x01\x03\x03\x07"


def _frame(from_a: bool, seq: int, ack: int, flags: int, options: bytes = b"", payload: bytes = b"") -> bytes:
    """One TCP segment between two hosts, checksums left out."""
    ends, ports = ((10, 0, 0, 1), (10, 0, 0, 2)), (40_000, 1024)
    source, target = (0, 1) if from_a else (1, 0)
    offset = (20 + len(options)) // 4
    tcp = struct.pack("!HHIIBBHHH", ports[source], ports[target], seq, ack, offset << 4, flags, 500, 0, 0)
    tcp += options + payload
    ip = struct.pack(
        "!BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), seq, 0, 64, 6, 0, bytes(ends[source]), bytes(ends[target])
    )
    return bytes(12) + b"\x08\x00" + ip + tcp


def _conversation() -> list[bytes]:
    """A connection that opens, greets like MPI, sends data, loses some and repeats it."""
    opening = [
        _frame(True, 0, 0, 0x02, _SYN_OPTIONS),
        _frame(False, 0, 1, 0x12, _SYN_OPTIONS),
        _frame(True, 1, 1, 0x18, payload=_HANDSHAKE),
        _frame(False, 1, 25, 0x18, payload=_HANDSHAKE),
    ]
    data = [_frame(True, 25 + 100 * (k % 90), 25, 0x18, payload=bytes(100)) for k in range(100)]
    answers = [_frame(False, 25, 25 + 100 * k, 0x10) for k in range(90)]
    return [*opening, *data, *answers]


def _datagrams() -> list[bytes]:
    """Two packets of RoCEv2 with the same number."""
    udp = struct.pack("!HHHH", 50_000, 4791, 24, 0) + bytes.fromhex("04000000000000110000000100000000")
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 44, 0, 0, 64, 17, 0, bytes((10, 0, 0, 1)), bytes((10, 0, 0, 2)))
    return 2 * [bytes(12) + b"\x08\x00" + ip + udp]


def _strangers() -> list[bytes]:
    """More hosts, pairs of them and connections than the first tables have room for, each with a first packet."""
    tcp = struct.pack("!HHIIBBHHH", 50_000, 1024, 7, 0, 0x50, 0x10, 500, 0, 0)
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 40, 0, 0, 64, 6, 0)
    ends = (bytes((10, 1, number // 256, number % 256, 10, 0, 0, 2)) for number in range(2500))
    return [bytes(12) + b"\x08\x00" + ip + both + tcp for both in ends]


def _pcap(frames: list[bytes]) -> bytes:
    parts = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 128, 1)]
    for number, frame in enumerate(frames):
        stamp_ns = number % 100 * 10_000_000 + number % 7 * 1000  # gaps that differ, or nothing is fitted to them
        second = number // 100 + 4 * (number == len(frames) - 1)  # a gap that does not fit 31 bits
        parts.append(struct.pack("<IIII", second, stamp_ns, len(frame), len(frame)) + frame)
    return b"".join(parts)


def _pcapng(frames: list[bytes]) -> bytes:
    parts = [
        struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28),
        struct.pack("<IIHHII", 1, 20, 1, 0, 0, 20),
    ]
    for number, frame in enumerate(frames):
        padded = frame + bytes(-len(frame) % 4)
        length = 32 + len(padded)
        head = struct.pack("<IIIIIII", 6, length, 0, 0, number * 10_000, len(frame), len(frame))
        parts.append(head + padded + struct.pack("<I", length))
    return b"".join(parts)


def warm_up() -> None:
    """Run every kernel once on a made-up capture in both formats."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "warm-up"
        for data in (_pcap([*_conversation(), *_datagrams()]), _pcapng(_conversation())):
            path.write_bytes(data)
            analyse(path)
        path.write_bytes(_pcap(_conversation() + 2 * _strangers()))
        connections = TcpAccumulator(max_connections=64, max_samples=64)
        for table in tables_of(path):
            connections.update(table)
        analyse(path)
        path.write_bytes(_pcapng(_conversation()))
        Decoder().filter_flows()
        # The last one is a recording as dumpcap makes it.
        join([Recording("a", path, frozenset({"10.0.0.1"}))], Path(place) / "joined")
    kernels.keep_ready()


if __name__ == "__main__":
    warm_up()
