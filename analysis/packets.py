"""The columnar packet table: one numpy column per field, one row per frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from analysis.addresses import Addresses

MOST_HOSTS: Final = 1 << 16
MOST_FLOWS: Final = 1 << 18
"""Capacity of the tables of hosts, flows and connections; a capture with more is unusable."""
NO_FLOW: Final = np.uint32(0xFFFFFFFF)
NO_HOST: Final = np.uint32(0xFFFFFFFF)
NO_SCALE: Final = np.uint8(255)
NO_TIME: Final = np.int64(-(2**63))

# In place of a jobid in handshake signatures (kernels.handshake_signatures)
NO_SIGNATURE: Final = -2
WITHOUT_RANK: Final = -1

# Bits of PacketTable.kind
IPV4: Final = 1
IPV6: Final = 2
TCP: Final = 4
UDP: Final = 8
ICMP: Final = 16
FRAGMENT: Final = 32
"""A later fragment: no transport header, so ports, sequence numbers and payload of TCP are unknown."""
CUT: Final = 64
"""The captured bytes end inside a required header; the columns have the part that was readable."""
REVERSE: Final = 128
"""The packet travels from the flow's second endpoint to its first (endpoint A = sender of the first packet seen)."""

COLUMNS: Final[dict[str, Any]] = {
    "time_ns": np.int64, "orig_len": np.uint32, "cap_len": np.uint32, "kind": np.uint8, "src": np.uint32, "dst": np.uint32,
    "sport": np.uint16, "dport": np.uint16, "flow": np.uint32, "payload": np.uint32, "seq": np.uint32, "ack": np.uint32,
    "window": np.uint16, "tcp_flags": np.uint8, "wscale": np.uint8, "mss": np.uint16, "fingerprint": np.uint32,
}  # fmt: skip
"""The per-packet columns of a PacketTable, in order, with their types."""

# Kind of a virtual network, in the upper bits of its word in PacketTable.flow_network
VXLAN: Final = 1
GENEVE: Final = 2
GRE: Final = 3

ENDS: Final = np.dtype([("hosts", np.uint32, 2), ("ports", np.uint16, 2)])
"""A flow: host and port of endpoint A and of B. Arrays of a decoder may have further fields."""

# Bits of PacketTable.tcp_flags that are used, as on the wire
FIN: Final = 0x01
SYN: Final = 0x02
RST: Final = 0x04
ACK: Final = 0x10


@dataclass(frozen=True, slots=True)
class PacketTable:
    """Decoded headers of N packets, in file order. All arrays have shape (N,).

    ``time_ns`` is nanoseconds since the epoch (``NO_TIME`` if the format records none), ``orig_len`` the length on the
    wire in bytes (captured link layer included), ``cap_len`` the captured length. ``payload`` is the transport payload
    in bytes, by the rule for coalesced segments if the IP length field is 0. ``src``/``dst`` index
    ``hosts``; ``flow`` indexes ``flow_endpoints``: one entry per unordered 5-tuple (a connection that reuses its ports is
    split later, in ``flows``). ``window`` is the raw field; ``wscale`` and ``mss`` come from SYN options (``NO_SCALE``, 0
    if absent). ``fingerprint`` hashes IP and TCP headers and the payload length, to find frames captured twice.
    For RoCEv2 (UDP to port 4791) ``seq`` is the packet's number, ``ack`` the destination queue pair, ``window`` the
    operation code and ``tcp_flags`` the two ECN bits of the IP header.
    """

    time_ns: npt.NDArray[np.int64]
    orig_len: npt.NDArray[np.uint32]
    cap_len: npt.NDArray[np.uint32]
    kind: npt.NDArray[np.uint8]
    src: npt.NDArray[np.uint32]
    dst: npt.NDArray[np.uint32]
    sport: npt.NDArray[np.uint16]
    dport: npt.NDArray[np.uint16]
    flow: npt.NDArray[np.uint32]
    payload: npt.NDArray[np.uint32]
    seq: npt.NDArray[np.uint32]
    ack: npt.NDArray[np.uint32]
    window: npt.NDArray[np.uint16]
    tcp_flags: npt.NDArray[np.uint8]
    wscale: npt.NDArray[np.uint8]
    mss: npt.NDArray[np.uint16]
    fingerprint: npt.NDArray[np.uint32]
    hosts: Addresses = field(default_factory=Addresses)
    flow_endpoints: npt.NDArray[np.void] = field(default_factory=lambda: np.zeros(0, ENDS))
    """Shape (F,), with the fields of ENDS."""
    flow_protocol: npt.NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))
    """Shape (F,): IP protocol number."""
    flow_network: npt.NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, np.uint64))
    """Shape (F,): virtual network of the flow, 0 for none (kernels.frames.encapsulation); (0,) if unknown."""
    btl_handshakes: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 3), np.int64))
    """Shape (H, 3): packet index, jobid, rank of the signatures of MPI libraries (kernels.handshake_signatures)."""
    source: dict[str, Any] = field(default_factory=dict)
    """Facts of the file: format, link types, snap length, drop counters, truncated_tail, unread_bytes, decoder, notes."""

    def __len__(self) -> int:
        return len(self.time_ns)

    @property
    def nbytes(self) -> int:
        """Memory of all columns in bytes."""
        return sum(a.nbytes for name in self.__slots__ if isinstance(a := getattr(self, name), np.ndarray))

    def named_ranks(self, first: int = 0, behind: int | None = None) -> npt.NDArray[np.int64]:
        """Return (n, 4) packet index, side of the flow, jobid, rank of signatures.

        Only signatures that name the rank count. Side 1 is the flow's second endpoint.
        """
        rows, named = self.btl_handshakes[:, 0], self.btl_handshakes[:, 1] >= 0
        signatures = self.btl_handshakes[named & (rows >= first) & (rows < (len(self) if behind is None else behind))]
        return np.stack(
            [signatures[:, 0], self.kind[signatures[:, 0]] >> 7, signatures[:, 1], signatures[:, 2]], axis=1
        )

    @classmethod
    def columns(cls) -> tuple[str, ...]:
        """Return the names of the per-packet columns, in order."""
        return tuple(COLUMNS)

    @classmethod
    def joined(cls, tables: Sequence[PacketTable], source: dict[str, Any]) -> PacketTable:
        """Join successive tables of one reader (at least one)."""
        columns: dict[str, Any] = {name: np.concatenate([getattr(t, name) for t in tables]) for name in cls.columns()}
        first_rows = np.cumsum([0, *(len(t) for t in tables)])
        handshakes = [t.btl_handshakes + np.array([row, 0, 0]) for t, row in zip(tables, first_rows, strict=False)]
        last = tables[-1]
        return cls(
            **columns,
            hosts=last.hosts,
            flow_endpoints=last.flow_endpoints,
            flow_protocol=last.flow_protocol,
            flow_network=last.flow_network,
            btl_handshakes=np.concatenate(handshakes),
            source=source,
        )

    @classmethod
    def empty(cls, source: dict[str, Any]) -> PacketTable:
        """Return a table without packets."""
        columns: dict[str, Any] = {name: np.zeros(0, dtype) for name, dtype in COLUMNS.items()}
        return cls(**columns, source=source)
