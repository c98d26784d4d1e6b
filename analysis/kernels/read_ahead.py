"""Pieces of a pcap file one after the other: read, framed and decoded before the interpreter is asked again.

A piece is small enough to be in the processor's cache until it is decoded; three calls for each would cost more than that saves.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from analysis.kernels import jit, without_numba
from analysis.kernels.decode import decode
from analysis.kernels.frames.framing import MORE, frame_pcap

PIECE_BYTES: Final = 1 << 17
"""Read at a time."""

Int64 = npt.NDArray[np.int64]
UInt32 = npt.NDArray[np.uint32]
UInt16 = npt.NDArray[np.uint16]
UInt8 = npt.NDArray[np.uint8]


def _of_the_system() -> tuple[Any, Any]:
    """(read, memmove) as POSIX and C have them, addresses as numbers."""
    if without_numba():
        return None, None  # they are part of kept code
    from numba import types

    return (
        types.ExternalFunction("read", types.int64(types.int32, types.int64, types.int64)),
        types.ExternalFunction("memmove", types.int64(types.int64, types.int64, types.int64)),
    )


_read, _memmove = _of_the_system()


@jit
def read_pcap(
    file: int,
    data: int,
    size: int,
    start: int,
    end: int,
    big_endian: bool,
    ns_per_fraction: int,
    longest: int,
    link: int,
    time_ns: Int64,
    first_row: int,
    offsets: Int64,
    links: Int64,
    cap_len: UInt32,
    orig_len: UInt32,
    kind: UInt8,
    src: UInt32,
    dst: UInt32,
    sport: UInt16,
    dport: UInt16,
    flow: UInt32,
    payload: UInt32,
    seq: UInt32,
    ack: UInt32,
    window: UInt16,
    tcp_flags: UInt8,
    wscale: UInt8,
    mss: UInt16,
    fingerprint: UInt32,
    handshakes: Int64,
    tables: int,
    room_for_flows: int,
) -> tuple[int, int, int, int, int, int]:
    """``frame_pcap`` and ``decode`` of bytes ``start`` to ``end`` behind the address ``data``, and of what ``file``, a descriptor, gives.

    ``data`` is the address of ``size`` bytes. Goes on until the arrays are full or the caller is needed: at the (present) end of the
    file, at an error, at a record as long as the buffer, where a table must grow.
    Returns (rows framed, rows decoded, start, end, status of the framing, odd stamps).
    """
    rows, room, odd_stamps = 0, len(offsets), 0
    while True:
        # Where a frame lies is forgotten once it is decoded: the same few offsets again and again stay in the cache
        n, start, status, odd = frame_pcap(
            data, start, end, big_endian, ns_per_fraction, longest, link,
            time_ns[rows:], orig_len[rows:], cap_len[rows:], offsets[: room - rows], links[: room - rows],
        )  # fmt: skip
        to = rows + n
        odd_stamps += odd
        decoded = decode(
            data, first_row + rows, offsets[:n], links[:n], cap_len[rows:to], orig_len[rows:to], kind[rows:to],
            src[rows:to], dst[rows:to], sport[rows:to], dport[rows:to], flow[rows:to], payload[rows:to], seq[rows:to],
            ack[rows:to], window[rows:to], tcp_flags[rows:to], wscale[rows:to], mss[rows:to], fingerprint[rows:to],
            handshakes, tables, room_for_flows,
        )  # fmt: skip
        if decoded < n or status != MORE:
            for i in range(n - 1, decoded - 1, -1):  # where the caller looks for them
                offsets[rows + i], links[rows + i] = offsets[i], links[i]
            return to, rows + decoded, start, end, status, odd_stamps
        rows = to
        if start > 0:
            end -= start
            _memmove(data, data + start, end)
            start = 0
        count = _read(np.int32(file), data + end, min(PIECE_BYTES, size - end))
        if count <= 0:
            return rows, rows, start, end, status, odd_stamps
        end += count
