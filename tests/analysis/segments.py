"""TCP segments as the tests write them, and the packet table that holds them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from analysis.addresses import Addresses
from analysis.packets import ACK, CUT, ENDS, FIN, IPV4, NO_SCALE, NO_TIME, REVERSE, RST, SYN, TCP, PacketTable

__all__ = ["ACK", "CUT", "FIN", "NO_TIME", "RST", "SYN", "Segment", "slices", "table_of"]

HEADER_BYTES = 54


@dataclass(frozen=True)
class Segment:
    """One packet."""

    time_ns: int
    side: int = 0
    seq: int = 0
    ack: int = 0
    flags: int = ACK
    payload: int = 0
    window: int = 1000
    wscale: int = int(NO_SCALE)
    flow: int = 0
    cut: bool = False


def table_of(
    segments: Sequence[Segment],
    *,
    endpoints: Sequence[tuple[int, int, int, int]] = ((0, 4000, 1, 20000),),
    hosts: tuple[str, ...] = ("10.0.0.1", "10.0.0.2", "10.0.0.3"),
    handshakes: Sequence[tuple[int, int, int]] = (),
) -> PacketTable:
    """Return the table of segments.

    ``endpoints`` per flow: host, port, host, port; side 0 of a segment is the first. ``handshakes``: row, jobid, vpid.
    """
    columns: dict[str, Any] = {name: np.zeros(len(segments), _DTYPES[name]) for name in PacketTable.columns()}
    for row, segment in enumerate(segments):
        host_a, port_a, host_b, port_b = endpoints[segment.flow]
        source, target = (host_a, port_a), (host_b, port_b)
        if segment.side:
            source, target = target, source
        kind = IPV4 | TCP | (REVERSE if segment.side else 0) | (CUT if segment.cut else 0)
        values = {
            "time_ns": segment.time_ns, "orig_len": HEADER_BYTES + segment.payload, "cap_len": HEADER_BYTES, "kind": kind,
            "src": source[0], "sport": source[1], "dst": target[0], "dport": target[1], "flow": segment.flow,
            "payload": segment.payload, "seq": segment.seq % 2**32, "ack": segment.ack % 2**32, "window": segment.window,
            "tcp_flags": segment.flags, "wscale": segment.wscale,
        }  # fmt: skip
        for name, value in values.items():
            columns[name][row] = value
    return PacketTable(
        **columns,
        hosts=Addresses.of(hosts),
        flow_endpoints=np.array([((a, b), (port_a, port_b)) for a, port_a, b, port_b in endpoints], ENDS),
        flow_protocol=np.full(len(endpoints), 6, np.uint8),
        btl_handshakes=np.array(handshakes, np.int64).reshape(-1, 3),
    )


def slices(table: PacketTable, cuts: Sequence[int]) -> list[PacketTable]:
    """Return the table in pieces, cut before the rows ``cuts``."""
    bounds = [0, *sorted(cuts), len(table)]
    pieces = []
    for low, high in pairwise(bounds):
        inside = (table.btl_handshakes[:, 0] >= low) & (table.btl_handshakes[:, 0] < high)
        pieces.append(
            PacketTable(
                **{name: getattr(table, name)[low:high] for name in PacketTable.columns()},
                hosts=table.hosts,
                flow_endpoints=table.flow_endpoints,
                flow_protocol=table.flow_protocol,
                btl_handshakes=table.btl_handshakes[inside] - np.array([low, 0, 0]),
            )
        )
    return pieces


_DTYPES = {name: getattr(PacketTable.empty({}), name).dtype for name in PacketTable.columns()}
