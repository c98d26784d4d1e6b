"""Compilation of all kernels during set-up: ``python -m analysis.warm_up``.

Without it the first analysis compiles for a minute; later processes load the machine code (``analysis.kernels``).
"""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path

import numpy as np

from analysis.capture.join import join
from analysis.capture.sharding import Recording
from analysis.capture.tables import tables_of
from analysis.capture_analysis import analyse
from analysis.kernels.joining import slots_to_blocks
from analysis.traffic.tcp import TcpAccumulator

_HANDSHAKE = struct.pack("<II", 1, 0) + b"OPAL-TCP-BTL".ljust(16, b"\0")
_SYN_OPTIONS = b"\x02\x04\x05\xb4\x01\x03\x03\x07"


def _frame(from_a: bool, seq: int, ack: int, flags: int, options: bytes = b"", payload: bytes = b"") -> bytes:
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
    """Build a connection of MPI with losses and retransmissions."""
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
    udp = struct.pack("!HHHH", 50_000, 4791, 24, 0) + bytes.fromhex("04000000000000110000000100000000")
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 44, 0, 0, 64, 17, 0, bytes((10, 0, 0, 1)), bytes((10, 0, 0, 2)))
    return 2 * [bytes(12) + b"\x08\x00" + ip + udp]


def _pcap(frames: list[bytes]) -> bytes:
    parts = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 128, 1)]
    for number, frame in enumerate(frames):
        stamp_ns = number % 100 * 10_000_000 + number % 7 * 1000  # different gaps, which the fits require
        second = number // 100 + 4 * (number == len(frames) - 1)  # a gap of more than 31 bits
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
    """Run every kernel once on a synthetic capture in both formats."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "warm-up"
        for data in (_pcap([*_conversation(), *_datagrams()]), _pcapng(_conversation())):
            path.write_bytes(data)
            analyse(path)
        path.write_bytes(_pcapng(_conversation()))  # a recording like those of dumpcap
        connections = TcpAccumulator(max_samples=64)
        for table in tables_of(path):
            connections.update(table)
        join([Recording("a", path, frozenset({"10.0.0.1"}))], Path(directory) / "joined")
    slots_to_blocks(np.frombuffer(bytes(64), np.uint32).reshape(1, 16), 8, np.empty(16, np.uint32))


if __name__ == "__main__":
    warm_up()
